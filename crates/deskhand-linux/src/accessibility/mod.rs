//! AT-SPI 2: element trees of applications.

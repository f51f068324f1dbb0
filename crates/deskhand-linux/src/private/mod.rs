//! A desktop of our own: Xvfb, window manager, buses, and the supervisor that ends them all.

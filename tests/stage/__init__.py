"""What the acceptance tests stand on: desktops, applications and clients, each ended by process id."""

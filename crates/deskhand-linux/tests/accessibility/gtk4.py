"""A GTK 4 window that changes when it is told to: one command per line of standard input, one answer per line."""
import sys

import gi

gi.require_version("Gtk", "4.0")
from gi.repository import GLib, Gtk

loop = GLib.MainLoop()
Gtk.init()
window = Gtk.Window(title=sys.argv[1], default_width=300, default_height=300)
box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
window.set_child(box)
label = Gtk.Label(label="count 0")
check = Gtk.CheckButton(label="check", active=True)
slow = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
for widget in (label, check, slow):
    box.append(widget)


def command(_source, _condition):
    line = sys.stdin.readline().split()
    if not line:
        loop.quit()
        return False
    word, *rest = line
    if word == "label":
        label.set_text("count " + rest[0])
    elif word == "add":
        slow.append(Gtk.Button(label="dynamic " + rest[0]))
    elif word == "insert":
        slow.prepend(Gtk.Button(label="dynamic " + rest[0]))
    elif word == "remove":
        slow.remove(slow.get_first_child())
    elif word == "check":
        check.set_active(rest[0] == "on")
    print("done", flush=True)
    return True


GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, command)
window.present()
print("ready", flush=True)
loop.run()

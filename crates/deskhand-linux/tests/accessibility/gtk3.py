"""A GTK 3 window that changes when it is told to: one command per line of standard input, one answer per line."""
import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk

title = sys.argv[1]
window = Gtk.Window(title=title)
window.set_default_size(400, 500)
box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
window.add(box)
label = Gtk.Label(label="count 0")
inner = Gtk.Label(label="inner 0")
wrapped = Gtk.Button()
wrapped.add(inner)
entry = Gtk.Entry(text="Grüße")
password = Gtk.Entry(text="hidden", visibility=False)
check = Gtk.CheckButton(label="check", active=True)
scale = Gtk.Scale.new_with_range(Gtk.Orientation.HORIZONTAL, 0, 100, 1)
scale.set_value(42)
rows = Gtk.ListStore(str)
for number in range(5):
    rows.append([f"row {number}"])
table = Gtk.TreeView(model=rows)
table.append_column(Gtk.TreeViewColumn("Rows", Gtk.CellRendererText(), text=0))
table.get_selection().select_path(2)
modal = Gtk.Button(label="modal")
slow = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
for widget in (label, wrapped, entry, password, check, scale, table, modal, slow):
    box.add(widget)


def run_dialog(_button):
    dialog = Gtk.MessageDialog(transient_for=window, modal=True, text="modal", buttons=Gtk.ButtonsType.OK)
    dialog.run()
    dialog.destroy()


modal.connect("clicked", run_dialog)


def command(_source, _condition):
    line = sys.stdin.readline().split()
    if not line:
        Gtk.main_quit()
        return False
    word, *rest = line
    if word == "label":
        label.set_text("count " + rest[0])
    elif word == "inner":
        inner.set_text("inner " + rest[0])
    elif word == "row":
        rows[0][0] = "row " + rest[0]
    elif word == "append":
        rows.append(["row " + rest[0]])
    elif word == "check":
        check.set_active(rest[0] == "on")
    elif word == "entry":
        entry.set_text(rest[0])
    elif word in ("add", "insert"):
        button = Gtk.Button(label="dynamic " + rest[0])
        slow.add(button)
        if word == "insert":
            slow.reorder_child(button, 0)
        button.show()
    elif word == "replace":
        for child in slow.get_children():
            child.destroy()
        button = Gtk.Button(label="dynamic " + rest[0])
        slow.add(button)
        button.show()
    elif word == "remove":
        slow.get_children()[0].destroy()
    elif word == "hide":
        wrapped.set_visible(rest[0] == "off")
    print("done", flush=True)
    return True


GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, command)
window.connect("destroy", Gtk.main_quit)
window.show_all()
print("ready", flush=True)
Gtk.main()

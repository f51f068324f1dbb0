"""The X server as any other client sees it: keyboard state, pointer, focus, stacking. Through Xlib by ctypes."""

import contextlib
import ctypes
import os

CORE_KEYBOARD = 0x100
SHIFT, LOCK, CONTROL = 1, 2, 4


class _KeyboardState(ctypes.Structure):
    _fields_ = [
        ("group", ctypes.c_ubyte),
        ("locked_group", ctypes.c_ubyte),
        ("base_group", ctypes.c_ushort),
        ("latched_group", ctypes.c_ushort),
        ("mods", ctypes.c_ubyte),
        ("base_mods", ctypes.c_ubyte),
        ("latched_mods", ctypes.c_ubyte),
        ("locked_mods", ctypes.c_ubyte),
        ("compat_state", ctypes.c_ubyte),
        ("grab_mods", ctypes.c_ubyte),
        ("compat_grab_mods", ctypes.c_ubyte),
        ("lookup_mods", ctypes.c_ubyte),
        ("compat_lookup_mods", ctypes.c_ubyte),
        ("ptr_buttons", ctypes.c_ushort),
    ]


class Keyboard:
    """What typing may not leave changed."""

    def __init__(self, group, mods, locked_mods, keys, keymap):
        self.group = group
        self.mods = mods
        self.locked_mods = locked_mods
        self.keys = keys
        self.keymap = keymap

    def __eq__(self, other):
        return vars(self) == vars(other)

    def difference(self, other):
        """What differs, in words short enough for a failed assertion."""
        parts = [
            f"{name}: {getattr(self, name)} -> {getattr(other, name)}"
            for name in ("group", "mods", "locked_mods", "keys")
            if getattr(self, name) != getattr(other, name)
        ]
        before, after = self.keymap.splitlines(), other.keymap.splitlines()
        parts += [f"keymap: {line!r} -> {now!r}" for line, now in zip(before, after) if line != now][:5]
        return "; ".join(parts) or "nothing"


class Server:
    """A connection to a desktop's X server."""

    def __init__(self, desktop):
        self.desktop = desktop
        self.x = ctypes.CDLL("libX11.so.6")
        self.test = ctypes.CDLL("libXtst.so.6")
        self.x.XOpenDisplay.restype = ctypes.c_void_p
        with _environment(XAUTHORITY=desktop.env.get("XAUTHORITY", "")):
            self.display = ctypes.c_void_p(self.x.XOpenDisplay(desktop.env["DISPLAY"].encode()))
        if not self.display.value:
            raise AssertionError(f"cannot open {desktop.env['DISPLAY']}")
        self.x.XDefaultRootWindow.restype = ctypes.c_ulong
        self.x.XStringToKeysym.restype = ctypes.c_ulong
        self.root = self.x.XDefaultRootWindow(self.display)

    def close(self):
        self.x.XCloseDisplay(self.display)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Keyboard

    def keyboard_state(self):
        state = _KeyboardState()
        self.x.XkbGetState(self.display, CORE_KEYBOARD, ctypes.byref(state))
        return state

    def keyboard(self):
        """Group, modifiers, pressed keys and the whole map. `xmodmap -pke` shows what is mapped, xkbcomp what it means."""
        state = self.keyboard_state()
        return Keyboard(
            state.group, state.mods, state.locked_mods, self.pressed_keys(),
            self.desktop.run("xmodmap", "-pke") + self.desktop.run("xkbcomp", "-w", "0", self.desktop.env["DISPLAY"], "-"),
        )

    def pressed_keys(self):
        keys = (ctypes.c_char * 32)()
        self.x.XQueryKeymap(self.display, keys)
        bits = bytes(keys)
        return [code for code in range(256) if bits[code // 8] >> code % 8 & 1]

    def lock_group(self, group):
        self.x.XkbLockGroup(self.display, CORE_KEYBOARD, ctypes.c_uint(group))
        self.x.XSync(self.display, 0)

    def lock_modifiers(self, mask, on):
        self.x.XkbLockModifiers(self.display, CORE_KEYBOARD, ctypes.c_uint(mask), ctypes.c_uint(mask if on else 0))
        self.x.XSync(self.display, 0)

    def key(self, name, down):
        keysym = self.x.XStringToKeysym(name.encode())
        code = self.x.XKeysymToKeycode(self.display, ctypes.c_ulong(keysym))
        self.test.XTestFakeKeyEvent(self.display, ctypes.c_uint(code & 0xFF), int(down), ctypes.c_ulong(0))
        self.x.XSync(self.display, 0)

    # Pointer, focus, stacking

    def pointer(self):
        """Position and mask of held buttons and modifiers."""
        window = ctypes.c_ulong()
        numbers = [ctypes.c_int() for _ in range(4)]
        mask = ctypes.c_uint()
        self.x.XQueryPointer(
            self.display, ctypes.c_ulong(self.root), ctypes.byref(window), ctypes.byref(window),
            *map(ctypes.byref, numbers), ctypes.byref(mask),
        )
        return (numbers[0].value, numbers[1].value), mask.value

    def move_pointer(self, x, y):
        self.test.XTestFakeMotionEvent(self.display, -1, x, y, ctypes.c_ulong(0))
        self.x.XSync(self.display, 0)

    def grab_pointer(self):
        """Tries to take the pointer, and lets go of it at once. Whether it was to be had."""
        root, none, motion = ctypes.c_ulong(self.root), ctypes.c_ulong(0), ctypes.c_uint(1 << 6)
        status = self.x.XGrabPointer(self.display, root, 0, motion, 1, 1, none, none, ctypes.c_ulong(0))
        self.x.XUngrabPointer(self.display, ctypes.c_ulong(0))
        self.x.XSync(self.display, 0)
        return status == 0

    def focus(self):
        window, revert = ctypes.c_ulong(), ctypes.c_int()
        self.x.XGetInputFocus(self.display, ctypes.byref(window), ctypes.byref(revert))
        return window.value

    def stacking(self):
        """Children of the root, lowest first."""
        root, parent = ctypes.c_ulong(), ctypes.c_ulong()
        children = ctypes.POINTER(ctypes.c_ulong)()
        number = ctypes.c_uint()
        self.x.XQueryTree(
            self.display, ctypes.c_ulong(self.root), ctypes.byref(root), ctypes.byref(parent), ctypes.byref(children),
            ctypes.byref(number),
        )
        found = [children[place] for place in range(number.value)]
        if number.value:
            self.x.XFree(children)
        return found


@contextlib.contextmanager
def _environment(**values):
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

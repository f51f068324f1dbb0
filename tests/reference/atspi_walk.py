#!/usr/bin/python3
"""Walks a window's accessibility tree with libatspi, one call at a time, as the reference that trees are compared with.

    atspi_walk.py TITLE [--wake] [--most-children N]

Prints one JSON object: how many elements the walk met below and including the window whose name, or whose
application's name, contains TITLE, how many
objects it left out because their parent has too many children (a spreadsheet's table has two thousand million), and
each element's depth, role, name and what it shows of text, value, states and selection.
"""

import argparse
import json
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

STATES = ("CHECKED", "SELECTED", "FOCUSED", "SHOWING", "VISIBLE", "MANAGES_DESCENDANTS")


def quiet(call, otherwise=None):
    """Toolkits leave out half of what the interfaces promise; the walk goes on."""
    try:
        return call()
    except GLib.Error:
        return otherwise


def windows():
    """Each window with the name of its application."""
    desktop = Atspi.get_desktop(0)
    for place in range(desktop.get_child_count()):
        application = quiet(lambda: desktop.get_child_at_index(place))
        if application is None:
            continue
        for number in range(quiet(application.get_child_count, 0)):
            window = quiet(lambda: application.get_child_at_index(number))
            if window is not None:
                yield window, quiet(application.get_name, "") or ""


def describe(node, depth):
    states = quiet(node.get_state_set)
    has = [name for name in STATES if states is not None and states.contains(getattr(Atspi.StateType, name))]
    facts = {
        "depth": depth,
        "role": quiet(node.get_role_name, ""),
        "name": quiet(node.get_name, ""),
        "states": has,
    }
    text = quiet(node.get_text_iface)
    if text is not None:
        length = quiet(lambda: Atspi.Text.get_character_count(text), 0) or 0
        facts["text"] = quiet(lambda: Atspi.Text.get_text(text, 0, min(length, 10000)), "")
    value = quiet(node.get_value_iface)
    if value is not None:
        facts["value"] = quiet(lambda: Atspi.Value.get_current_value(value))
    return facts


def walk(window, most_children):
    nodes, left_out = [], 0
    pending = [(window, 0)]
    while pending:
        node, depth = pending.pop()
        nodes.append(describe(node, depth))
        number = quiet(node.get_child_count, 0) or 0
        if number > most_children:
            left_out += number
            continue
        children = (quiet(lambda: node.get_child_at_index(place)) for place in range(number))
        pending.extend(reversed([(child, depth + 1) for child in children if child is not None]))
    return nodes, left_out


def main():
    parser = argparse.ArgumentParser(description="Walks a window's accessibility tree with libatspi.")
    parser.add_argument("title")
    parser.add_argument("--wake", action="store_true", help="ask for attributes first, which makes Chromium fill its tree")
    parser.add_argument("--most-children", type=int, default=20000)
    options = parser.parse_args()
    Atspi.init()
    found = list(windows())
    matching = [window for window, _ in found if options.title in (quiet(window.get_name, "") or "")]
    # GTK 4 leaves the name of some windows empty.
    matching = matching or [window for window, application in found if options.title in application]
    if not matching:
        # Not published yet, or under another name.
        json.dump({"count": 0, "left_out": 0, "nodes": []}, sys.stdout)
        return
    # One application can show an empty window beside the real one under the same name.
    window = max(matching, key=lambda window: quiet(window.get_child_count, 0))
    if options.wake:
        quiet(window.get_attributes)
        time.sleep(1)
        window.clear_cache()
    nodes, left_out = walk(window, options.most_children)
    json.dump({"count": len(nodes), "left_out": left_out, "nodes": nodes}, sys.stdout)


main()

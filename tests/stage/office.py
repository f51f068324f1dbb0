"""Tells, for each line of its input, what a running Calc looks like. Run by the Python that has LibreOffice's bridge."""

import json
import sys
import time

import uno
from com.sun.star.connection import NoConnectException


def connect(pipe):
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    end = time.monotonic() + 60
    while True:
        try:
            return resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
        except NoConnectException:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)  # it opens its pipe when it is ready, and nothing announces it


def state(document):
    controller = document.getCurrentController()
    sheet = controller.getActiveSheet()
    selection = document.getCurrentSelection()
    address = getattr(selection, "AbsoluteName", "")
    return {
        "selection": address,
        "row": controller.getFirstVisibleRow(),
        "bold": getattr(selection, "CharWeight", 100.0) > 100.0,
        "italic": str(getattr(getattr(selection, "CharPosture", None), "value", "NONE")) == "ITALIC",
        "cells": {name: sheet.getCellRangeByName(name).getString() for name in ("A1", "A2", "B2")},
    }


def main():
    context = connect(sys.argv[1])
    desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
    for _ in sys.stdin:
        document = desktop.getCurrentComponent()
        while document is None:
            time.sleep(0.1)
            document = desktop.getCurrentComponent()
        print(json.dumps(state(document)), flush=True)


main()

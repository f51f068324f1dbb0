"""A Qt 5 window that changes when it is told to: one command per line of standard input, one answer per line."""
import sys

from PyQt5 import QtCore, QtWidgets

app = QtWidgets.QApplication(sys.argv)
window = QtWidgets.QWidget()
window.setWindowTitle(sys.argv[1])
layout = QtWidgets.QVBoxLayout(window)
label = QtWidgets.QLabel("count 0")
check = QtWidgets.QCheckBox("check")
check.setChecked(True)
entry = QtWidgets.QLineEdit("Grüße")
password = QtWidgets.QLineEdit("hidden")
password.setEchoMode(QtWidgets.QLineEdit.Password)
slider = QtWidgets.QSlider(QtCore.Qt.Horizontal)
slider.setValue(42)
slow = QtWidgets.QVBoxLayout()
for widget in (label, check, entry, password, slider):
    layout.addWidget(widget)
layout.addLayout(slow)


def command():
    line = sys.stdin.readline().split()
    if not line:
        app.quit()
        return
    word, *rest = line
    if word == "label":
        label.setText("count " + rest[0])
    elif word == "check":
        check.setChecked(rest[0] == "on")
    elif word == "add":
        slow.addWidget(QtWidgets.QPushButton("dynamic " + rest[0]))
    elif word == "insert":
        slow.insertWidget(0, QtWidgets.QPushButton("dynamic " + rest[0]))
    elif word == "remove":
        slow.takeAt(0).widget().setParent(None)
    print("done", flush=True)


notifier = QtCore.QSocketNotifier(0, QtCore.QSocketNotifier.Read)
notifier.activated.connect(lambda *_: command())
window.show()
print("ready", flush=True)
sys.exit(app.exec_())

"""Real programs as users start them, and the X servers, compositors and daemons that they run with."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

QT = "/usr/lib/x86_64-linux-gnu/qt5/examples"
SDL = "/usr/libexec/installed-tests/SDL2"
# The system's own: others lack the modules that its packages bring.
PYTHON = "/usr/bin/python3"
# Where Debian puts programs that are not on every PATH.
MORE = ("/usr/games", "/usr/lib/qt5/bin", "/usr/lib/qt6/bin")

KIVY = """
from kivy.app import App
from kivy.clock import Clock
from kivy.uix.button import Button
class A(App):
    def build(self):
        Clock.schedule_interval(lambda dt: self.root.canvas.ask_update(), 0)
        return Button(text='takt')
A().run()
"""
PYGAME = """
import pygame
from OpenGL import GL
pygame.init()
pygame.display.set_mode((400, 300), pygame.OPENGL | pygame.DOUBLEBUF)
while not any(event.type == pygame.QUIT for event in pygame.event.get()):
    GL.glClear(GL.GL_COLOR_BUFFER_BIT)
    GL.glRotatef(1, 0, 0, 1)
    GL.glBegin(GL.GL_TRIANGLES)
    for x, y in ((-.5, -.5), (.5, -.5), (0, .5)):
        GL.glVertex2f(x, y)
    GL.glEnd()
    pygame.display.flip()
"""
PYGLET = """
import pyglet
window = pyglet.window.Window(400, 300, vsync=False)
shape = pyglet.shapes.Rectangle(150, 100, 100, 100, color=(200, 80, 40))
@window.event
def on_draw():
    window.clear()
    shape.draw()
def turn(dt):
    shape.rotation += 2
pyglet.clock.schedule_interval(turn, 1 / 60)
pyglet.app.run()
"""
QML = """
import QtQuick 2.0
Rectangle { width: 400; height: 300
  Rectangle { anchors.centerIn: parent; width: 120; height: 120; color: "teal"
    NumberAnimation on rotation { from: 0; to: 360; duration: 2000; loops: Animation.Infinite } } }
"""

SPINNER = """<!doctype html><style>div { width: 100px; height: 100px; background: teal; animation: turn 2s linear infinite }
@keyframes turn { to { transform: rotate(360deg) } }</style><div></div>"""


@dataclass(frozen=True)
class Program:
    """A program: `{home}` in its command stands for a folder of its own, `{file}` for a file with `text`."""

    name: str
    command: tuple
    api: str
    # Its picture does not move.
    still: bool = False
    # It needs a compositor instead of an X server.
    wayland: bool = False
    text: str = ""
    variables: tuple = ()

    def path(self):
        """Where it is installed; none if it is not."""
        words = [word for word in self.command if word != "env" and "=" not in word.split("/")[0]]
        return shutil.which(words[0], path=os.pathsep.join([os.environ["PATH"], *MORE]))


PROGRAMS = (
    Program("es2gears", ("es2gears_x11",), "GL ES"),
    Program("es2gears (Wayland)", ("es2gears_wayland",), "GL ES", wayland=True),
    Program("weston-simple-egl", ("weston-simple-egl",), "GL ES", wayland=True),
    Program("eglgears", ("eglgears_x11",), "GL on EGL"),
    Program("glxgears", ("glxgears",), "GL on GLX"),
    Program("glxgears, 4 samples", ("glxgears", "-samples", "4"), "GL on GLX, multisampled"),
    Program("glmark2-es2", ("glmark2-es2", "--size", "400x300", "--run-forever"), "GL ES"),
    Program("glmark2", ("glmark2", "--size", "400x300", "--run-forever"), "GL on GLX"),
    Program("mpv (EGL)", ("mpv", "--no-config", "--vo=gpu", "--gpu-context=x11egl", "--loop=inf",
                          "av://lavfi:testsrc=size=320x240"), "GL on EGL"),
    Program("mpv (GLX)", ("mpv", "--no-config", "--vo=gpu", "--gpu-context=x11", "--loop=inf",
                          "av://lavfi:testsrc=size=320x240"), "GL on GLX"),
    Program("mpv (Wayland)", ("mpv", "--no-config", "--vo=gpu", "--gpu-context=wayland", "--loop=inf",
                              "av://lavfi:testsrc=size=320x240"), "GL on EGL", wayland=True),
    Program("gstreamer", ("gst-launch-1.0", "-q", "videotestsrc", "!", "glimagesink"), "GL"),
    Program("gstreamer (Wayland)", ("gst-launch-1.0", "-q", "videotestsrc", "!", "glimagesink"), "GL", wayland=True),
    Program("weston (X11)", ("weston", "--backend=x11-backend.so", "--no-config", "--socket=survey", "--idle-time=0"),
            "GL ES"),
    Program("love", ("love",), "GL on GLX (SDL)"),
    Program("SDL 2, testgl2", (f"{SDL}/testgl2",), "GL on GLX (SDL)"),
    Program("SDL 2, testgles2", (f"{SDL}/testgles2",), "GL ES (SDL)"),
    Program("SDL 2, testsprite2", (f"{SDL}/testsprite2",), "GL by SDL's renderer"),
    Program("pygame", (PYTHON, "{file}"), "GL on GLX (SDL)", text=PYGAME),
    Program("pyglet", (PYTHON, "{file}"), "GL on GLX", text=PYGLET),
    Program("kivy", (PYTHON, "{file}"), "GL (SDL)", text=KIVY),
    Program("neverball", ("neverball",), "GL on GLX (SDL)"),
    Program("extremetuxracer", ("etr",), "GL on GLX (SFML)"),
    Program("godot3", ("godot3", "--project-manager"), "GL ES on GLX"),
    Program("supertuxkart", ("supertuxkart", "--windowed"), "GL (Irrlicht, SDL)"),
    Program("openarena", ("openarena", "+set", "r_fullscreen", "0", "+set", "r_mode", "3", "+set", "com_maxfps", "0"),
            "GL on GLX (SDL)"),
    Program("minetest", ("minetest",), "GL on GLX (Irrlicht)"),
    Program("retroarch", ("retroarch", "--menu"), "GL"),
    Program("scummvm", ("scummvm", "--gfx-mode=opengl"), "GL (SDL)"),
    Program("kitty", ("kitty", "--config", "NONE", "sh", "-c", "while :; do date +%N; done"), "GL on GLX (GLFW)"),
    Program("alacritty", ("alacritty", "-e", "sh", "-c", "while :; do date +%N; done"), "GL (glutin)"),
    Program("foot (Wayland)", ("foot", "sh", "-c", "while :; do date +%N; done"), "the processor", wayland=True),
    Program("Qt 5, OpenGL widget", (f"{QT}/opengl/qopenglwidget/qopenglwidget",), "GL on GLX"),
    Program("Qt 5, OpenGL window", (f"{QT}/gui/openglwindow/openglwindow",), "GL on GLX"),
    Program("Qt 5, raster window", (f"{QT}/gui/rasterwindow/rasterwindow",), "the processor", still=True),
    Program("Qt Quick (Qt 5)", ("/usr/lib/qt5/bin/qmlscene", "{file}"), "GL on GLX", text=QML),
    Program("Qt Quick (Qt 6)", ("/usr/lib/qt6/bin/qml", "{file}"), "GL on GLX", text=QML),
    Program("GTK 3, GL area", ("gtk3-demo", "--run=glarea"), "GL on GLX", still=True),
    Program("GTK 4", ("gtk4-widget-factory",), "GL"),
    Program("GTK 4 (Wayland)", ("gtk4-widget-factory",), "GL", wayland=True),
    Program("GTK 4, GL area", ("gtk4-demo", "--run=glarea"), "GL", still=True),
    Program("GTK 4, with Cairo", ("env", "GSK_RENDERER=cairo", "gtk4-widget-factory"), "the processor"),
    Program("epiphany", ("dbus-run-session", "--", "epiphany", "--profile={home}", "file://{file}"), "GL (WebKit)",
            text=SPINNER),
    Program("firefox", ("firefox-esr", "--no-remote", "--profile", "{home}", "about:support"), "GL on EGL or GLX"),
    Program("chromium", ("chromium", "--no-sandbox", "--user-data-dir={home}", "about:gpu"), "ANGLE"),
    Program("chromium (gles-egl)", ("chromium", "--no-sandbox", "--use-gl=angle", "--use-angle=gles-egl",
                                    "--ignore-gpu-blocklist", "--user-data-dir={home}", "about:gpu"), "GL ES"),
    Program("vkcube", ("vkcube",), "Vulkan"),
    Program("xclock", ("xclock",), "the processor"),
)


class Server:
    """An X server without a screen."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.variables = {"DISPLAY": ":" + self.process.stdout.readline().strip(), "WAYLAND_DISPLAY": None,
                          "GDK_BACKEND": "x11", "QT_QPA_PLATFORM": "xcb"}

    def picture(self, path):
        display = self.variables["DISPLAY"]
        subprocess.run(["import", "-silent", "-display", display, "-window", "root", str(path)], check=False,
                       env={**os.environ, "DISPLAY": display})

    def end(self):
        self.process.kill()
        self.process.wait()


class Compositor:
    """A Wayland compositor without a screen, which lets programs make their own pictures."""

    def __init__(self, folder):
        socket = "takt-programs"
        self.process = subprocess.Popen(
            ["weston", "--backend=headless-backend.so", "--use-pixman", f"--socket={socket}", "--idle-time=0",
             "--no-config"], env={**os.environ, "XDG_RUNTIME_DIR": str(folder), "WAYLAND_DISPLAY": ""},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_file(folder / socket, self.process)
        self.variables = {"DISPLAY": None, "WAYLAND_DISPLAY": socket, "GDK_BACKEND": "wayland",
                          "QT_QPA_PLATFORM": "wayland", "SDL_VIDEODRIVER": "wayland", "GST_GL_WINDOW": "wayland"}

    def end(self):
        self.process.kill()
        self.process.wait()


def await_file(path, process):
    """Waits until a process has made a file, or ended."""
    while not path.exists() and process.poll() is None:
        time.sleep(0.05)


class Daemon:
    """A daemon of our own."""

    def __init__(self, takt, folder):
        self.socket = str(folder / "control")
        self.process = subprocess.Popen([takt, "serve", "--no-measure", "--socket", self.socket],
                                        stderr=subprocess.DEVNULL)
        await_file(Path(self.socket), self.process)
        self.pid = self.process.pid
        self.under = (takt, "run", "--schedule", "--socket", self.socket)

    def end(self):
        self.process.terminate()
        self.process.wait()


class Run:
    """A program in a process group of its own, with a home of its own; its errors go into a file."""

    def __init__(self, program, server, folder, before=(), log=None, variables=()):
        self.home = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
        file = self.home / ("page.html" if program.text.startswith("<") else "text.qml")
        file.write_text(program.text)
        places = {"{home}": str(self.home), "{file}": str(file)}
        words = list(program.command)
        for place, path in places.items():
            words = [word.replace(place, path) for word in words]
        self.log = log or self.home / "log"
        env = {**os.environ, **server.variables, "LIBGL_ALWAYS_SOFTWARE": "1", "SDL_AUDIODRIVER": "dummy",
               "XDG_RUNTIME_DIR": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(self.home),
               "PATH": os.pathsep.join([os.environ["PATH"], *MORE]), **dict(program.variables), **dict(variables)}
        env = {name: value for name, value in env.items() if value is not None}
        self.process = subprocess.Popen([*before, *words], env=env, start_new_session=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log.open("wb"))

    def said(self):
        return self.log.read_text(errors="replace")

    def end(self):
        """Ends what was started here, by its group."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            time.sleep(0.5)
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

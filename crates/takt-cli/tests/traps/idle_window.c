/* A window in which nothing is drawn, until the input ends. */
#include <X11/Xlib.h>
#include <stdio.h>

int main(void) {
    Display *display = XOpenDisplay(NULL);
    if (!display) return 97;
    XMapWindow(display, XCreateSimpleWindow(display, DefaultRootWindow(display), 0, 0, 64, 48, 0, 0, 0));
    XSync(display, False);
    while (getchar() != EOF) {
    }
    puts("done");
    return 0;
}

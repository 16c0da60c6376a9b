/* Lets the conformance suite wlcs ask a running cockpit: connections are made at the socket of its domain, and windows
 * and devices are moved over the socket for tools. The suite loads this file as a library; the layouts below are those
 * that it has documented for such libraries, version 3. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct wl_display;
struct wl_proxy;
extern int wl_display_get_fd(struct wl_display *);
extern uint32_t wl_proxy_get_id(struct wl_proxy *);

typedef int32_t fixed;

struct extension {
    const char *name;
    uint32_t version;
};

struct descriptor {
    uint32_t version;
    size_t count;
    const struct extension *extensions;
};

struct pointer {
    uint32_t version;
    void (*move_absolute)(struct pointer *, fixed, fixed);
    void (*move_relative)(struct pointer *, fixed, fixed);
    void (*button_up)(struct pointer *, int);
    void (*button_down)(struct pointer *, int);
    void (*destroy)(struct pointer *);
};

struct touch {
    uint32_t version;
    void (*down)(struct touch *, fixed, fixed);
    void (*move)(struct touch *, fixed, fixed);
    void (*up)(struct touch *);
    void (*destroy)(struct touch *);
};

struct server {
    uint32_t version;
    void (*start)(struct server *);
    void (*stop)(struct server *);
    int (*create_client_socket)(struct server *);
    void (*position_window_absolute)(struct server *, struct wl_display *, struct wl_proxy *, int, int);
    struct pointer *(*create_pointer)(struct server *);
    struct touch *(*create_touch)(struct server *);
    const struct descriptor *(*get_descriptor)(const struct server *);
    void (*start_on_this_thread)(struct server *, void *);
};

struct integration {
    uint32_t version;
    struct server *(*create_server)(int, const char **);
    void (*destroy_server)(struct server *);
};

/* Connections of all tests, by number from 1, as the cockpit counts them. */
#define CONNECTIONS_MAX 100000
static int descriptors[CONNECTIONS_MAX];
static int connections;
static int tools = -1;
static char reply[4 << 20];

static int connect_to(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *folder = getenv("TAKT_WLCS_FOLDER");
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder ? folder : ".", name);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, (struct sockaddr *)&address, sizeof address) != 0) {
        perror(address.sun_path);
        abort();
    }
    return made;
}

/* Asks the cockpit; the answer is in `reply`. Tools that say nothing for ten seconds are cut off, so it tries twice. */
static void ask(const char *request) {
    for (int attempt = 0; attempt < 2; attempt++) {
        if (tools < 0) {
            tools = connect_to("admin.sock");
        }
        size_t length = 0;
        if (send(tools, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request)) {
            while (length + 1 < sizeof reply) {
                ssize_t got = read(tools, reply + length, sizeof reply - 1 - length);
                if (got <= 0) {
                    break;
                }
                length += got;
                if (reply[length - 1] == '\n') {
                    reply[length] = 0;
                    if (!strstr(reply, "nothing was asked for")) {
                        return;
                    }
                    break;
                }
            }
        }
        close(tools);
        tools = -1;
    }
    reply[0] = 0;
}

static void input(const char *device, const char *act) {
    char request[256];
    snprintf(request, sizeof request, "{\"ask\":\"input\",\"device\":\"%s\",\"acts\":[{%s}]}\n", device, act);
    ask(request);
}

static void start(struct server *server) {
    (void)server;
}

/* Waits until clients of the test are gone. */
static void stop(struct server *server) {
    (void)server;
    input("mouse", "\"do\":\"reset\"");
    input("panel", "\"do\":\"reset\"");
    input("mouse", "\"do\":\"point\",\"at\":\"1599,1199\"");
    for (int turn = 0; turn < 1000; turn++) {
        ask("{\"ask\":\"status\"}\n");
        if (strstr(reply, "\"clients\":0,")) {
            return;
        }
        usleep(2000);
    }
}

static int create_client_socket(struct server *server) {
    (void)server;
    int made = connect_to("wlcs");
    if (++connections < CONNECTIONS_MAX) {
        descriptors[connections] = made;
    }
    return made;
}

static void position(struct server *server, struct wl_display *client, struct wl_proxy *surface, int x, int y) {
    (void)server;
    int number = connections;
    while (number > 0 && descriptors[number] != wl_display_get_fd(client)) {
        number--;
    }
    char wanted[64], request[256];
    snprintf(wanted, sizeof wanted, "\"client\":%d,\"surface\":%u,", number, wl_proxy_get_id(surface));
    /* The thread that decides may not have heard of the window yet. */
    for (int turn = 0; turn < 500; turn++) {
        ask("{\"ask\":\"status\"}\n");
        char *found = strstr(reply, wanted);
        unsigned long long id = 0;
        int width = 0, height = 0;
        if (found) {
            char *begin = found;
            while (begin > reply && strncmp(begin, "{\"id\":", 6) != 0) {
                begin--;
            }
            sscanf(begin, "{\"id\":%llu", &id);
            char *area = strstr(begin, "\"area\":\"");
            if (area && area < found) {
                sscanf(area, "\"area\":\"%dx%d", &width, &height);
            }
        }
        if (id && width > 0) {
            snprintf(request, sizeof request, "{\"ask\":\"place\",\"window\":%llu,\"area\":\"%dx%d+%d+%d\"}\n", id,
                     width, height, x, y);
            ask(request);
            snprintf(request, sizeof request, "{\"ask\":\"raise\",\"window\":%llu}\n", id);
            ask(request);
            return;
        }
        usleep(2000);
    }
}

static int whole(fixed value) {
    return value / 256;
}

static void act_at(const char *device, const char *what, fixed x, fixed y) {
    char act[128];
    int left = whole(x) < 0 ? 0 : whole(x), top = whole(y) < 0 ? 0 : whole(y);
    snprintf(act, sizeof act, "\"do\":\"%s\",\"at\":\"%d,%d\"", what, left, top);
    input(device, act);
}

static void move_absolute(struct pointer *pointer, fixed x, fixed y) {
    (void)pointer;
    act_at("mouse", "point", x, y);
}

static void move_relative(struct pointer *pointer, fixed x, fixed y) {
    (void)pointer;
    char act[128];
    snprintf(act, sizeof act, "\"do\":\"nudge\",\"x\":%d,\"y\":%d", whole(x), whole(y));
    input("mouse", act);
}

static void button(const char *what, int number) {
    char act[128];
    snprintf(act, sizeof act, "\"do\":\"%s\",\"button\":%d", what, number);
    input("mouse", act);
}

static void button_up(struct pointer *pointer, int number) {
    (void)pointer;
    button("release", number);
}

static void button_down(struct pointer *pointer, int number) {
    (void)pointer;
    button("press", number);
}

static void destroy_pointer(struct pointer *pointer) {
    free(pointer);
}

static struct pointer *create_pointer(struct server *server) {
    (void)server;
    struct pointer *made = malloc(sizeof *made);
    *made = (struct pointer){1, move_absolute, move_relative, button_up, button_down, destroy_pointer};
    return made;
}

static void touch_down(struct touch *touch, fixed x, fixed y) {
    (void)touch;
    act_at("panel", "down", x, y);
}

static void touch_move(struct touch *touch, fixed x, fixed y) {
    (void)touch;
    act_at("panel", "drag", x, y);
}

static void touch_up(struct touch *touch) {
    (void)touch;
    input("panel", "\"do\":\"up\"");
}

static void destroy_touch(struct touch *touch) {
    free(touch);
}

static struct touch *create_touch(struct server *server) {
    (void)server;
    struct touch *made = malloc(sizeof *made);
    *made = (struct touch){1, touch_down, touch_move, touch_up, destroy_touch};
    return made;
}

static const struct extension offered[] = {
    {"wl_compositor", 5}, {"wl_subcompositor", 1}, {"wl_shm", 1},       {"wl_seat", 7},
    {"wl_output", 4},     {"xdg_wm_base", 3},      {"wp_viewporter", 1}, {"zxdg_output_manager_v1", 3},
};

static const struct descriptor *get_descriptor(const struct server *server) {
    static const struct descriptor all = {1, sizeof offered / sizeof *offered, offered};
    (void)server;
    return &all;
}

static struct server *create_server(int count, const char **arguments) {
    (void)count;
    (void)arguments;
    struct server *made = malloc(sizeof *made);
    *made = (struct server){3, start, stop, create_client_socket, position, create_pointer, create_touch, get_descriptor, NULL};
    return made;
}

static void destroy_server(struct server *server) {
    free(server);
}

const struct integration wlcs_server_integration = {1, create_server, destroy_server};

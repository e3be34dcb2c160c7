/* clickbox.h: network functions in C for clickbox.
 *
 * A function joins a service of a steering switch, gets packets, and answers each with what is to become of it. It is a process
 * of its own, perhaps in a container; clickbox copies packets into and out of memory that both share.
 *
 *     #include "clickbox.h"
 *
 *     static clickbox_answer forward(struct clickbox *box, struct clickbox_packet *packet, void *state)
 *     {
 *         return CLICKBOX_NEXT;
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         struct clickbox_function function = { .packet = forward };
 *         return clickbox_main(argc, argv, &function);
 *     }
 *
 * One thread uses a `struct clickbox`. No function of the library calls exit or prints, apart from clickbox_main.
 */
#ifndef CLICKBOX_H
#define CLICKBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the conversation with clickbox. */
#define CLICKBOX_VERSION 1

/* The most bytes of a packet. */
#define CLICKBOX_PACKET_SIZE 2048

/* The most bytes of a message to another service. */
#define CLICKBOX_MESSAGE_SIZE 4096

/* The most bytes of the state of a flow that is handed over. */
#define CLICKBOX_STATE_SIZE 4096

/* A membership in a service, or a pair of captures that stands in for one. */
struct clickbox;

/* A packet that the function has: from clickbox_receive, clickbox_new or clickbox_copy until it is answered. */
struct clickbox_packet {
    uint8_t *data;   /* Its first byte, that of the Ethernet header. The function may change it and move it inside the buffer. */
    uint32_t length; /* Its bytes. */
    uint8_t face;    /* Where it came in: 0 is the inner face, 1 the outer one. A service with one face has 0 only. */
    uint32_t buffer; /* The library's. */
};

/* What is to become of a packet. */
typedef uint16_t clickbox_answer;

#define CLICKBOX_NEXT ((clickbox_answer)0)    /* On to the next service of its chain, or out of it. */
#define CLICKBOX_DROP ((clickbox_answer)3)    /* Dropped, and counted as function_drop. */
#define CLICKBOX_LOOK_UP ((clickbox_answer)4) /* Where the flows of the switch send it. */
/* What clickbox_destination returns for an unknown name. Given as an answer, it is overruled like one without the right. */
#define CLICKBOX_NOWHERE ((clickbox_answer)0xffff)

/* ---- Joining and leaving ---- */

/* How the state of flows is handed over: see below. */
struct clickbox_hand_over;

/* Settings. Zeros are defaults. */
struct clickbox_options {
    uint16_t slots;   /* Packets that each ring holds: a power of two from 64 to 2048. Default: 512. */
    uint32_t spin_us; /* Microseconds for which clickbox_receive polls before it sleeps. Polling uses a whole processor. */
    const struct clickbox_hand_over *hand_over; /* NULL: flows go on without their state when the function leaves. */
};

/* Joins the service whose socket is at `path`: the socket itself, or the folder that contains `socket` and `token`. NULL stands
 * for $CLICKBOX_FUNCTION, or for /function without that variable. `options` may be NULL. Returns NULL if it fails;
 * clickbox_error then says why. */
struct clickbox *clickbox_join(const char *path, const struct clickbox_options *options);

/* Reads packets from a capture in pcap format and writes those that would go on to another one, in place of a service. `write`
 * may be NULL. Time is that of the captured packets. */
struct clickbox *clickbox_offline(const char *read, const char *write);

/* Begins to leave: the function gets no new packets, and its flows continue at the other instances. With `hand_over` these get the
 * states of the flows before, while packets of other flows still come. Go on with clickbox_receive and
 * clickbox_send: clickbox_receive returns what still waits for the function, and then, when the switch has all answers, -1 with
 * an empty clickbox_error. Answer before the packets that you hold back. Then call clickbox_leave: no packet was lost. Returns -1
 * if clickbox can't be told, or is of an earlier version. clickbox_run does all this after clickbox_stop. Offline, the capture ends
 * here. */
int clickbox_drain(struct clickbox *box);

/* Leaves the service. Packets that were not answered are lost: see clickbox_drain. */
void clickbox_leave(struct clickbox *box);

/* Why the last call failed that returned NULL or -1. */
const char *clickbox_error(void);

/* The name of this instance, such as nf-1. */
const char *clickbox_name(const struct clickbox *box);

/* The number of faces: 1 or 2. */
unsigned clickbox_faces(const struct clickbox *box);

/* ---- Packets, in a loop of one's own ---- */

/* Sends what was answered, waits for packets, and takes up to `most`. Waits for at most `timeout_ms` milliseconds; -1 means for
 * ever. Returns their number, 0 if none came, or -1 if the function is out of its service: clickbox ended, the service was
 * removed, or the function took no packets for too long. At the end of a capture, errors are absent: clickbox_error is "". */
int clickbox_receive(struct clickbox *box, struct clickbox_packet *packets, unsigned most, int timeout_ms);

/* Answers a packet, which the function then no longer has. In a service with two faces it leaves at the other one than it came
 * in. Returns -1 if the function is out of its service. It also does if the packet is too long or was moved out of its buffer,
 * and the function has it still. Answers are sent by the next clickbox_receive or clickbox_flush. */
int clickbox_send(struct clickbox *box, struct clickbox_packet *packet, clickbox_answer answer);

/* Like clickbox_send, at a face: 0 or 1. A packet at face 1 goes on in the forward direction of its chain, one at face 0 in
 * reverse. */
int clickbox_send_at(struct clickbox *box, struct clickbox_packet *packet, unsigned face, clickbox_answer answer);

/* Sends what was answered. */
void clickbox_flush(struct clickbox *box);

/* A new packet of this many bytes, with any contents; its face is 0. Such a packet is in no chain yet: answered with
 * CLICKBOX_NEXT it is looked up, and if no flow is for it, it goes on behind this service. Returns -1 if no buffer is free. */
int clickbox_new(struct clickbox *box, struct clickbox_packet *packet, uint32_t length);

/* A copy of a packet, which counts as new. Returns -1 if no buffer is free. */
int clickbox_copy(struct clickbox *box, const struct clickbox_packet *packet, struct clickbox_packet *copy);

/* The answer that sends packets to a destination: `NAME` for a service, `port:NAME` for a port, `chain:NAME` for a chain, which
 * they enter at its begin. It is CLICKBOX_NOWHERE if the service may not send there (clickbox service create --may-send-to).
 * Offline, it is never so. */
clickbox_answer clickbox_destination(const struct clickbox *box, const char *name);

/* The answer that sends a packet into a chain and lets the later packets of its flow take that chain too, in both directions: they
 * come to this function only if they pass it there. `to` is from clickbox_destination. It is CLICKBOX_NOWHERE if `to` is no
 * chain. */
clickbox_answer clickbox_with_flow(clickbox_answer to);

/* Nanoseconds of a clock that only goes forward; offline, the time of the last packet. It is read once for each
 * clickbox_receive. */
uint64_t clickbox_now(const struct clickbox *box);

/* ---- Packets, by callbacks ---- */

/* A function. All but `packet` may be NULL. */
struct clickbox_function {
    /* Decides what becomes of a packet. One that is then too long, or was moved out of its buffer, is dropped. */
    clickbox_answer (*packet)(struct clickbox *box, struct clickbox_packet *packet, void *state);
    /* After the function has joined, before the first packet. A return value other than 0 ends clickbox_run. */
    int (*start)(struct clickbox *box, void *state);
    /* About every `tick_ms` milliseconds. Offline, once at the end. */
    void (*tick)(struct clickbox *box, void *state);
    /* A message of a function. `from` is the name of its service: clickbox_destination(box, from) is where to answer. */
    void (*message)(struct clickbox *box, const char *from, const void *bytes, size_t length, void *state);
    /* Milliseconds between two calls of `tick`; 0 means 1000. */
    unsigned tick_ms;
    /* What the callbacks get. */
    void *state;
    /* Settings; with `options.hand_over`, how the state of flows is handed over. */
    struct clickbox_options options;
};

/* Calls the callbacks until clickbox_stop, or until the function is out of its service. Returns 0 after clickbox_stop and at the
 * end of a capture, the value of `start` if that is not 0, and otherwise -1. */
int clickbox_run(struct clickbox *box, const struct clickbox_function *function);

/* Lets clickbox_run leave in order, as clickbox_drain says, and return: after 2 s at most; with `hand_over`, 10 s after clickbox last
 * asked for states. The second call lets it return at once. It
 * may be called from a signal handler. */
void clickbox_stop(struct clickbox *box);

/* The main function of a program: `PROGRAM [SOCKET|FOLDER]` joins a service, and joins again when it is out of it, until SIGINT or
 * SIGTERM, upon which it leaves in order. `PROGRAM --read IN.pcap [--write OUT.pcap]` works on captures, and prints the counters as `NAME VALUE`. */
int clickbox_main(int argc, char **argv, const struct clickbox_function *function);

/* ---- Counters ---- */

/* A counter that `clickbox show service/NAME` displays: up to 32, with names of up to 23 letters, digits and underscores. Adding
 * to it is all that is to be done. Returns a place that nobody reads if there are too many. */
uint64_t *clickbox_counter(struct clickbox *box, const char *name);

/* ---- Messages ---- */

/* Sends bytes to all functions that joined a service. `to` is from clickbox_destination. Returns -1 if the message can't be sent
 * now, or if the service may not send there. The message is lost if a receiver does not read its messages. */
int clickbox_send_message(struct clickbox *box, clickbox_answer to, const void *bytes, size_t length);

/* Takes a message that was received, in a loop of one's own. `from` has room for 64 bytes, `bytes` for CLICKBOX_MESSAGE_SIZE.
 * Returns the length, or -1 if there is none. */
int clickbox_receive_message(struct clickbox *box, char *from, void *bytes);

/* ---- Headers and flows ---- */

/* The headers of a packet. Fields that it does not have are NULL or 0. */
struct clickbox_headers {
    uint8_t *ip;         /* The IPv4 or IPv6 header. */
    uint8_t *transport;  /* The TCP, UDP, SCTP or ICMP header. NULL in fragments after the first one. */
    uint8_t *payload;    /* What follows the TCP or UDP header. */
    uint32_t payload_length;
    uint16_t ether_type; /* That behind VLAN tags. */
    uint8_t version;     /* 4 or 6. */
    uint8_t protocol;    /* Of the transport header. */
    uint16_t source_port, destination_port; /* Of TCP, UDP and SCTP. */
};

/* Finds the headers of a packet. Returns -1 if it is not IP, or is cut off in its IP header. All pointers are inside the packet. */
int clickbox_headers(const struct clickbox_packet *packet, struct clickbox_headers *headers);

/* A flow: addresses, ports and protocol. Both directions have the same one, with the smaller end first. An ICMP echo message has its
 * identifier as both ports. An ICMP error belongs to the flow of the packet that it quotes, in its reverse direction. */
struct clickbox_flow {
    uint8_t address[2][16]; /* IPv4 addresses are the first four bytes. */
    uint16_t port[2];
    uint8_t protocol, version;
    uint8_t zero[2];
};

/* The flow of a packet. Returns 1 if the packet goes from end 0 to end 1, 2 if the other way, and -1 if it is not IP. */
int clickbox_flow(const struct clickbox_packet *packet, struct clickbox_flow *flow);

/* A table with some bytes of state for each flow. */
struct clickbox_flows;

/* A table for this many flows with `bytes` bytes of state each. A flow without packets for `idle_ns` is forgotten, and the one
 * that was idle longest makes room for a new one. `forget`, which may be NULL, is called for each. */
struct clickbox_flows *clickbox_flows_new(size_t flows, size_t bytes, uint64_t idle_ns,
                                          void (*forget)(const struct clickbox_flow *flow, void *bytes, void *state), void *state);

/* The state of a flow, all zeros if it is new; `now` is from clickbox_now. It stays where it is until the next call. `is_new` may
 * be NULL. */
void *clickbox_flow_state(struct clickbox_flows *flows, const struct clickbox_flow *flow, uint64_t now, int *is_new);

/* The number of flows in the table, after idle ones were forgotten. */
size_t clickbox_flow_count(struct clickbox_flows *flows, uint64_t now);

/* The flow at or behind a position, which is 0 for the first. Returns the position behind it, or 0 if there is none. A flow keeps its
 * position. */
uint64_t clickbox_flow_next(const struct clickbox_flows *flows, uint64_t position, struct clickbox_flow *flow);

/* Removes a flow, without a call of `forget`. Returns its state, which stays there until the next call, or NULL if there is no such
 * flow. */
const void *clickbox_flow_take(struct clickbox_flows *flows, const struct clickbox_flow *flow);

/* Frees the table. `forget` is called for all flows. */
void clickbox_flows_free(struct clickbox_flows *flows);

/* ---- Handing flows over ---- */

/* How a function that leaves hands the state of its flows over to the other instances, and takes such state over. All callbacks must be
 * there. clickbox_receive calls them, between packets: the function has answered all packets of such a flow by then, except those that
 * it holds back, and gets no more of them before another instance has the state. Flows are those of clickbox_flow.
 *
 * Instances of other programs or versions may join the same service. If the other instance has another version or does not take a state
 * over, `import_flow` of this one gets it back, and the flow goes on without its state after the function has left. `clickbox events`
 * says why. */
struct clickbox_hand_over {
    uint32_t version; /* Of the bytes. Change it whenever they or their meaning change. */
    uint32_t size;    /* The most bytes of the state of one flow: up to CLICKBOX_STATE_SIZE. */
    /* The flow at or behind a position, which is 0 for the first. Returns the position behind it, or 0 if there is none: see
     * clickbox_flow_next. */
    uint64_t (*next)(struct clickbox *box, uint64_t position, struct clickbox_flow *flow, void *state);
    /* Writes the state of a flow, at most `size` bytes, which need not be aligned, and forgets the flow. Returns the number of bytes, or
     * -1 if there is no such flow. */
    int (*export_flow)(struct clickbox *box, const struct clickbox_flow *flow, void *bytes, void *state);
    /* Takes over the state of a flow, in place of what there was. The bytes may be those of another program. Returns -1 if it does
     * not take them, and 0 otherwise. */
    int (*import_flow)(struct clickbox *box, const struct clickbox_flow *flow, const void *bytes, size_t length, void *state);
    void *state; /* What the callbacks get. */
};

#ifdef __cplusplus
}
#endif
#endif

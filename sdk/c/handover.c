/* handover.c: answers requests for the state of flows. The bytes are those of flow_state.rs in the crate `boundary`. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define STATES 5
/* Bytes of a flow, and of a state without those of the function. */
#define TUPLE 40
#define STATE_HEAD (16 + 2 * TUPLE)
/* Milliseconds for which an answer may wait for room. */
#define SEND_TIMEOUT 1000

/* What is left of a request. Reading more than that gives zeros, and is noticed at the end. */
struct reader {
    const uint8_t *at;
    size_t left;
    int failed;
};

static const uint8_t *take(struct reader *reader, size_t length)
{
    if (reader->left < length) {
        reader->failed = 1;
        reader->left = 0;
        return NULL;
    }
    reader->at += length;
    reader->left -= length;
    return reader->at - length;
}

static uint32_t take32(struct reader *reader)
{
    const uint8_t *at = take(reader, 4);
    return at ? get32(at) : 0;
}

static uint64_t take64(struct reader *reader)
{
    const uint8_t *at = take(reader, 8);
    return at ? get64(at) : 0;
}

/* An address, as a number of 128 bits whose high half comes first. IPv4 addresses are mapped into IPv6. */
static uint8_t *put_address(uint8_t *at, const uint8_t *address, unsigned version)
{
    uint64_t halves[2] = {0, version == 4 ? 0xffff : 0};
    if (version == 4)
        for (unsigned byte = 0; byte < 4; byte++)
            halves[1] = halves[1] << 8 | address[byte];
    else
        for (unsigned byte = 0; byte < 16; byte++)
            halves[byte / 8] = halves[byte / 8] << 8 | address[byte];
    put64(at, halves[0]);
    put64(at + 8, halves[1]);
    return at + 16;
}

static uint8_t *put_flow(uint8_t *at, const struct clickbox_flow *flow)
{
    put32(at, flow->protocol);
    at = put_address(at + 4, flow->address[0], flow->version);
    at = put_address(at, flow->address[1], flow->version);
    put32(at, (uint32_t)flow->port[0] << 16 | flow->port[1]);
    return at + 4;
}

static void take_flow(struct reader *reader, struct clickbox_flow *flow)
{
    memset(flow, 0, sizeof *flow);
    flow->protocol = (uint8_t)take32(reader);
    flow->version = 4;
    uint64_t halves[2][2];
    for (unsigned end = 0; end < 2; end++) {
        halves[end][0] = take64(reader);
        halves[end][1] = take64(reader);
        if (halves[end][0] != 0 || halves[end][1] >> 32 != 0xffff)
            flow->version = 6;
    }
    for (unsigned end = 0; end < 2; end++)
        for (unsigned byte = 0; byte < 16; byte++)
            if (flow->version == 6)
                flow->address[end][byte] = (uint8_t)(halves[end][byte / 8] >> (56 - byte % 8 * 8));
            else if (byte < 4)
                flow->address[end][byte] = (uint8_t)(halves[end][1] >> (24 - byte * 8));
    uint32_t ports = take32(reader);
    flow->port[0] = (uint16_t)(ports >> 16);
    flow->port[1] = (uint16_t)ports;
}

/* Writes the answer to a list: at most `most` flows from a position on. */
static uint8_t *list(struct clickbox *box, struct reader *reader, uint8_t *at, const uint8_t *end)
{
    take32(reader);
    uint64_t position = take64(reader);
    uint32_t most = take32(reader), count = 0;
    uint8_t *head = at;
    at += 20;
    while (count < most && at + 4 + TUPLE + 4 <= end) {
        struct clickbox_flow flow = {0};
        position = box->hand_over->next(box, position, &flow, box->hand_over->state);
        if (position == 0)
            break;
        /* Protocol 0 would stand for all flows between the addresses. */
        if (flow.protocol == 0)
            continue;
        put32(at, 1);
        at = put_flow(at + 4, &flow);
        count++;
    }
    put32(head, position != 0);
    put32(head + 4, 0);
    put64(head + 8, position);
    put32(head + 16, count);
    put32(at, 0);
    return at + 4;
}

/* Writes the states of flows, from the first one on, as far as there is room. */
static uint8_t *export_flows(struct clickbox *box, struct reader *reader, uint8_t *at, const uint8_t *end)
{
    const struct clickbox_hand_over *own = box->hand_over;
    take64(reader);
    take32(reader);
    uint32_t groups = take32(reader), done = 0, count = 0;
    uint8_t *head = at;
    at += 12;
    for (; done < groups && at + STATE_HEAD + own->size <= end; done++) {
        struct clickbox_flow flow;
        uint32_t tuples = take32(reader);
        take_flow(reader, &flow);
        if (reader->failed || tuples != 1)
            break;
        int length = own->export_flow(box, &flow, at + STATE_HEAD, own->state);
        if (length < 0 || (uint32_t)length > own->size)
            continue;
        put32(at, 0);
        put32(at + 4, 0);
        put32(at + 8, own->version);
        put_flow(put_flow(at + 12, &flow), &flow);
        put32(at + STATE_HEAD - 4, (uint32_t)length);
        at += STATE_HEAD + length;
        count++;
    }
    put32(head, 1);
    put32(head + 4, done);
    put32(head + 8, count);
    return at;
}

/* Takes states over, and writes which ones were refused. */
static uint8_t *import_flows(struct clickbox *box, struct reader *reader, uint8_t *at, const uint8_t *end)
{
    const struct clickbox_hand_over *own = box->hand_over;
    take32(reader);
    uint32_t states = take32(reader), count = 0;
    uint8_t *head = at;
    at += 4;
    for (uint32_t number = 0; number < states && !reader->failed; number++) {
        struct clickbox_flow flow, other;
        take(reader, take32(reader));
        take(reader, take32(reader));
        uint32_t version = take32(reader);
        take_flow(reader, &flow);
        take_flow(reader, &other);
        size_t length = take32(reader);
        const uint8_t *bytes = take(reader, length);
        if (reader->failed)
            break;
        char reason[64];
        if (version != own->version)
            snprintf(reason, sizeof reason, "the state has version %u, and not %u", version, own->version);
        else if (own->import_flow(box, &flow, bytes, length, own->state) == 0)
            continue;
        else
            snprintf(reason, sizeof reason, "it did not take the state over");
        size_t size = strlen(reason);
        if (at + 8 + size > end)
            break;
        put32(at, number);
        put32(at + 4, (uint32_t)size);
        memcpy(at + 8, reason, size);
        at += 8 + size;
        count++;
    }
    put32(head, count);
    return at;
}

void clickbox_answer_request(struct clickbox *box)
{
    uint8_t bytes[MESSAGE_SIZE] = {0}, *at = bytes + 16;
    const uint8_t *end = bytes + sizeof bytes;
    struct reader reader = {.at = box->request + 16, .left = box->request_length - 16};
    uint16_t kind = get16(box->request);
    box->request_length = 0;
    box->asked = box->now;
    if (kind == LIST_STATES)
        at = list(box, &reader, at, end);
    else if (kind == EXPORT_STATES)
        at = export_flows(box, &reader, at, end);
    else
        at = import_flows(box, &reader, at, end);
    put16(bytes, STATES);
    put32(bytes + 4, (uint32_t)(at - bytes));
    memcpy(bytes + 8, box->request + 8, 4);
    /* What the callbacks sent goes first. */
    clickbox_flush(box);
    struct pollfd room = {.fd = box->control, .events = POLLOUT};
    while (send(box->control, bytes, (size_t)(at - bytes), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        if ((errno != EAGAIN && errno != EINTR) || poll(&room, 1, SEND_TIMEOUT) == 0)
            return;
}

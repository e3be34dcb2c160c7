/* clickbox.c: joins a service and moves packets through its rings. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Messages. Each begins with its kind (2 bytes), two zeros, and its length with these eight bytes (4). */
#define REGISTER 1
#define COUNTERS 2
#define MESSAGE 3
#define LEAVE 4
#define WELCOME 0x101
#define REFUSED 0x102
#define MESSAGE_FROM 0x103
#define LEAVING 0x104
/* What each side can do: bits in REGISTER and WELCOME. */
#define LETS_LEAVE 1
#define HANDS_OVER 2
#define TOKEN_SIZE 32

/* A ring: four lines with the indices and the flags, then the slots. */
#define HEAD 0
#define TAIL 64
#define READER_SLEEPS 128
#define WRITER_SLEEPS 192
#define SLOTS 256

/* Nanoseconds between two looks at the connection while packets come without a pause, and between two publications. */
#define LOOK_INTERVAL 10000000ull
/* Nanoseconds after a request for the state of flows in which the next one is expected. */
#define REQUEST_INTERVAL 100000000ull

/* Kinds of answers, in their three lowest bits. */
#define INTO_CHAIN 5u
#define FLOW_INTO_CHAIN 6u
#define PUBLISH_INTERVAL 500000000ull

static _Thread_local char last_error[512];

void clickbox_set_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
}

const char *clickbox_error(void)
{
    return last_error;
}

uint64_t clickbox_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* ---- Rings ---- */

static uint32_t load(const struct ring *ring, unsigned word)
{
    return __atomic_load_n((const uint32_t *)(ring->start + word), __ATOMIC_ACQUIRE);
}

static void store(struct ring *ring, unsigned word, uint32_t value)
{
    __atomic_store_n((uint32_t *)(ring->start + word), value, __ATOMIC_RELEASE);
}

static uint64_t *slot(const struct clickbox *box, const struct ring *ring, uint32_t position)
{
    return (uint64_t *)(ring->start + SLOTS) + (position & (box->slots - 1));
}

static uint32_t buffer_of(uint64_t word)
{
    return (uint32_t)(word & 0xfffff);
}

/* Rings the doorbell if the other side of a ring sleeps. */
static int take_flag(struct ring *ring, unsigned flag)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!__atomic_load_n((uint32_t *)(ring->start + flag), __ATOMIC_RELAXED))
        return 0;
    __atomic_store_n((uint32_t *)(ring->start + flag), 0, __ATOMIC_RELAXED);
    return 1;
}

static void ring_doorbell(struct clickbox *box)
{
    char byte = 1;
    if (send(box->doorbell, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != EINTR)
        box->gone = 1;
}

static void publish(struct clickbox *box, struct ring *ring, unsigned index, unsigned flag)
{
    if (ring->shown == ring->position)
        return;
    ring->shown = ring->position;
    store(ring, index, ring->position);
    if (take_flag(ring, flag))
        ring_doorbell(box);
}

/* Packets that wait in a receive ring. */
static uint32_t waiting(struct ring *ring)
{
    if (ring->seen == ring->position)
        ring->seen = load(ring, HEAD);
    return ring->seen - ring->position;
}

/* Whether a slot of a transmit ring is free. */
static int has_room(const struct clickbox *box, struct ring *ring, uint32_t position)
{
    if (position - ring->seen >= box->slots)
        ring->seen = load(ring, TAIL);
    return position - ring->seen < box->slots;
}

/* A buffer that is in no ring; if there is none, that of a free slot of a transmit ring. */
static uint32_t take_spare(struct clickbox *box)
{
    if (box->spares > 0)
        return box->spare[--box->spares];
    for (unsigned face = 0; face < box->faces; face++) {
        struct ring *ring = &box->transmit[face];
        if (has_room(box, ring, ring->borrowed))
            return buffer_of(*slot(box, ring, ring->borrowed++));
    }
    return NO_BUFFER;
}

static void give_spare(struct clickbox *box, uint32_t buffer)
{
    if (box->spares < box->buffer_count)
        box->spare[box->spares++] = buffer;
}

static uint8_t *buffer_start(const struct clickbox *box, uint32_t buffer)
{
    return box->buffers + (size_t)buffer * CLICKBOX_PACKET_SIZE;
}

static unsigned take_packets(struct clickbox *box, unsigned face, struct clickbox_packet *packets, unsigned most)
{
    struct ring *ring = &box->receive[face];
    uint32_t count = waiting(ring);
    unsigned taken = 0;
    if (count > most)
        count = most;
    for (uint32_t ahead = 0; ahead < count && ahead < 4; ahead++)
        __builtin_prefetch(buffer_start(box, buffer_of(*slot(box, ring, ring->position + ahead)) % box->buffer_count));
    while (taken < count) {
        uint32_t spare = take_spare(box);
        if (spare == NO_BUFFER)
            break;
        if (taken + 4 < count) {
            uint64_t coming = *slot(box, ring, ring->position + 4);
            __builtin_prefetch(buffer_start(box, buffer_of(coming) % box->buffer_count) + (coming >> 20 & 0xfff));
        }
        uint64_t *place = slot(box, ring, ring->position), word = *place;
        uint32_t buffer = buffer_of(word), offset = word >> 20 & 0xfff, length = word >> 32 & 0x1ffff;
        *place = spare;
        ring->position++;
        if (buffer >= box->buffer_count || offset + length > CLICKBOX_PACKET_SIZE) {
            clickbox_set_error("clickbox sent a packet outside of the region");
            box->gone = 1;
            break;
        }
        packets[taken++] = (struct clickbox_packet){
            .data = buffer_start(box, buffer) + offset, .length = length, .face = (uint8_t)face, .buffer = buffer};
    }
    publish(box, ring, TAIL, WRITER_SLEEPS);
    return taken;
}

void clickbox_flush(struct clickbox *box)
{
    for (unsigned face = 0; face < box->faces && !box->in; face++)
        publish(box, &box->transmit[face], HEAD, READER_SLEEPS);
}

/* ---- Sleeping ---- */

/* Reads what waits at the connection. */
static void read_control(struct clickbox *box)
{
    uint8_t bytes[MESSAGE_SIZE];
    for (;;) {
        ssize_t length = recv(box->control, bytes, sizeof bytes, MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (length <= 0) {
            if (!box->gone)
                clickbox_set_error("clickbox closed the connection: the service is gone, or the function took no packets");
            box->gone = 1;
            return;
        }
        if (length < 8 || get32(bytes + 4) != (uint32_t)length)
            continue;
        if (get16(bytes) == REFUSED) {
            clickbox_set_error("%.*s", (int)(length - 16 > 0 ? length - 16 : 0), bytes + 16);
            box->gone = 1;
        } else if (get16(bytes) == MESSAGE_FROM && length >= 8 + NAME_SIZE && box->message_count < WAITING_MESSAGES) {
            unsigned at = (box->first_message + box->message_count) % WAITING_MESSAGES;
            struct message *message = &box->messages[at];
            size_t rest = (size_t)length - 8 - NAME_SIZE;
            if (rest > CLICKBOX_MESSAGE_SIZE)
                continue;
            memcpy(message->from, bytes + 8, NAME_SIZE - 1);
            memcpy(message->bytes, bytes + 8 + NAME_SIZE, rest);
            message->length = rest;
            box->message_count++;
        } else if (get16(bytes) >= LIST_STATES && get16(bytes) <= IMPORT_STATES && box->request && length >= 16) {
            memcpy(box->request, bytes, (size_t)length);
            box->request_length = (size_t)length;
        } else if (get16(bytes) == LEAVING && box->leaving)
            box->leaving = NO_MORE_PACKETS;
    }
}

static void publish_counters(struct clickbox *box)
{
    uint8_t bytes[16 + MAX_COUNTERS * 32] = {0};
    if (box->counters == 0 || box->now - box->published < PUBLISH_INTERVAL)
        return;
    box->published = box->now;
    size_t length = 16 + box->counters * 32;
    put16(bytes, COUNTERS);
    put32(bytes + 4, (uint32_t)length);
    put16(bytes + 8, (uint16_t)box->counters);
    for (unsigned number = 0; number < box->counters; number++) {
        memcpy(bytes + 16 + number * 32, box->counter[number].name, COUNTER_NAME_SIZE);
        put64(bytes + 16 + number * 32 + 24, box->counter[number].value);
    }
    /* If there is no room, the next publication has newer values. */
    send(box->control, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sleeps until the doorbell rings, a message comes, or the time is over. */
static void wait_for(struct clickbox *box, int timeout_ms)
{
    struct pollfd polls[2] = {{.fd = box->doorbell, .events = POLLIN}, {.fd = box->control, .events = POLLIN}};
    char rings[256];
    if (poll(polls, 2, timeout_ms) <= 0)
        return;
    if (polls[0].revents) {
        ssize_t heard = recv(box->doorbell, rings, sizeof rings, MSG_DONTWAIT);
        if (heard == 0 || (heard < 0 && errno != EAGAIN && errno != EINTR)) {
            clickbox_set_error("clickbox closed the doorbell: the service is gone, or the function took no packets");
            read_control(box);
            box->gone = 1;
        }
    }
    if (polls[1].revents)
        read_control(box);
}

/* Sets a flag in rings; returns 0 if there is something to do, so that the caller must not sleep. */
static int prepare_sleep(struct clickbox *box)
{
    for (unsigned face = 0; face < box->faces; face++)
        store(&box->receive[face], READER_SLEEPS, 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned face = 0; face < box->faces; face++)
        if (waiting(&box->receive[face]))
            return 0;
    return 1;
}

static void end_sleep(struct clickbox *box)
{
    for (unsigned face = 0; face < box->faces; face++)
        store(&box->receive[face], READER_SLEEPS, 0);
}

static unsigned take_from_faces(struct clickbox *box, struct clickbox_packet *packets, unsigned most)
{
    unsigned taken = 0;
    for (unsigned face = 0; face < box->faces; face++)
        taken += take_packets(box, face, packets + taken, most - taken);
    return taken;
}

/* Whether the switch has taken all that was answered. If not, the doorbell rings when it takes more. */
static int is_answered(struct clickbox *box)
{
    int answered = 1;
    for (unsigned face = 0; face < box->faces; face++) {
        struct ring *ring = &box->transmit[face];
        store(ring, WRITER_SLEEPS, 1);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        answered &= load(ring, TAIL) == ring->position;
        if (answered)
            store(ring, WRITER_SLEEPS, 0);
    }
    return answered;
}

int clickbox_receive(struct clickbox *box, struct clickbox_packet *packets, unsigned most, int timeout_ms)
{
    if (box->in)
        return clickbox_read_capture(box, packets, most);
    clickbox_flush(box);
    box->now = clickbox_clock();
    uint64_t begin = box->now;
    unsigned messages = box->message_count;
    for (;;) {
        if (box->now - box->looked >= LOOK_INTERVAL || box->now - box->asked < REQUEST_INTERVAL) {
            box->looked = box->now;
            read_control(box);
            publish_counters(box);
        }
        /* The function has none of the packets in hand that it got before. */
        if (box->request_length > 0)
            clickbox_answer_request(box);
        if (box->gone)
            return -1;
        unsigned taken = take_from_faces(box, packets, most);
        clickbox_watch_found(&box->watch, taken);
        if (taken > 0 || box->stopped > (box->leaving != 0) || box->message_count > messages)
            return (int)taken;
        if (box->leaving == NO_MORE_PACKETS && is_answered(box)) {
            clickbox_set_error("%s", "");
            box->finished = 1;
            return -1;
        }
        box->now = clickbox_clock();
        uint64_t elapsed = box->now - begin;
        if (timeout_ms >= 0 && elapsed >= (uint64_t)timeout_ms * 1000000ull)
            return 0;
        if (elapsed < box->spin_us * 1000ull) {
            clickbox_watch_pause();
            continue;
        }
        if (clickbox_watch_on(&box->watch))
            continue;
        /* Counters are published while the function is idle, too. */
        uint64_t rest = timeout_ms < 0 ? 500 : (uint64_t)timeout_ms - elapsed / 1000000;
        if (prepare_sleep(box))
            wait_for(box, rest < 500 ? (int)rest : 500);
        end_sleep(box);
        box->now = clickbox_clock();
        clickbox_watch_slept(&box->watch, box->now);
    }
}

/* ---- Answers ---- */

int clickbox_send_at(struct clickbox *box, struct clickbox_packet *packet, unsigned face, clickbox_answer answer)
{
    if ((face >= box->faces && !box->in) || packet->buffer >= box->buffer_count) {
        clickbox_set_error("a packet was sent twice, or at a face that the service does not have");
        return -1;
    }
    uint64_t offset = (uintptr_t)packet->data - (uintptr_t)buffer_start(box, packet->buffer);
    if (offset > CLICKBOX_PACKET_SIZE || packet->length > CLICKBOX_PACKET_SIZE - offset) {
        clickbox_set_error("a packet is too long, or was moved out of its buffer");
        return -1;
    }
    if (box->in) {
        int written = answer == CLICKBOX_DROP ? 0 : clickbox_write_capture(box, packet);
        give_spare(box, packet->buffer);
        packet->buffer = NO_BUFFER;
        return written;
    }
    struct ring *ring = &box->transmit[face];
    while (!has_room(box, ring, ring->position)) {
        /* The switch takes packets without a pause, unless it is gone. */
        clickbox_flush(box);
        store(ring, WRITER_SLEEPS, 1);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (!has_room(box, ring, ring->position))
            wait_for(box, 100);
        store(ring, WRITER_SLEEPS, 0);
        if (box->gone)
            return -1;
    }
    unsigned meta = answer == CLICKBOX_NOWHERE ? NO_SERVICE : answer & 0x7fffu;
    uint64_t *place = slot(box, ring, ring->position);
    if (ring->borrowed == ring->position) {
        give_spare(box, buffer_of(*place));
        ring->borrowed++;
    }
    *place = packet->buffer | offset << 20 | (uint64_t)packet->length << 32 | (uint64_t)meta << 49;
    ring->position++;
    packet->buffer = NO_BUFFER;
    /* The switch begins while the function works on the rest. */
    if (ring->position - ring->shown >= 32)
        publish(box, ring, HEAD, READER_SLEEPS);
    return 0;
}

int clickbox_send(struct clickbox *box, struct clickbox_packet *packet, clickbox_answer answer)
{
    return clickbox_send_at(box, packet, box->faces == 2 ? 1u - packet->face : 0, answer);
}

int clickbox_new(struct clickbox *box, struct clickbox_packet *packet, uint32_t length)
{
    if (length > CLICKBOX_PACKET_SIZE) {
        clickbox_set_error("a packet of %u bytes is too long", length);
        return -1;
    }
    uint32_t buffer = take_spare(box);
    if (buffer == NO_BUFFER || buffer >= box->buffer_count) {
        clickbox_set_error("no buffer is free");
        return -1;
    }
    /* Room for headers in front, if there is some. */
    uint32_t offset = length + 64 <= CLICKBOX_PACKET_SIZE ? 64 : 0;
    *packet = (struct clickbox_packet){.data = buffer_start(box, buffer) + offset, .length = length, .buffer = buffer};
    return 0;
}

int clickbox_copy(struct clickbox *box, const struct clickbox_packet *packet, struct clickbox_packet *copy)
{
    if (clickbox_new(box, copy, packet->length) < 0)
        return -1;
    memcpy(copy->data, packet->data, packet->length);
    copy->face = packet->face;
    return 0;
}

/* ---- Joining ---- */

/* Reads the token beside a socket. */
static int read_token(const char *socket_path, uint8_t *token)
{
    char path[4096];
    const char *slash = strrchr(socket_path, '/');
    int folder = slash ? (int)(slash - socket_path) + 1 : 0;
    snprintf(path, sizeof path, "%.*stoken", folder, socket_path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, token, TOKEN_SIZE);
    if (length != TOKEN_SIZE)
        clickbox_set_error("the token %s can't be read: %s", path, length < 0 ? strerror(errno) : "it is too short");
    if (file >= 0)
        close(file);
    return length == TOKEN_SIZE ? 0 : -1;
}

static int find_socket(const char *path, char *found, size_t size)
{
    struct stat status;
    if (!path)
        path = getenv("CLICKBOX_FUNCTION");
    if (!path || !*path)
        path = "/function";
    if (stat(path, &status) < 0) {
        clickbox_set_error("%s: %s; name the folder of the service, such as /run/clickbox/functions/NAME", path, strerror(errno));
        return -1;
    }
    int length = snprintf(found, size, "%s%s", path, S_ISDIR(status.st_mode) ? "/socket" : "");
    if (length < 0 || (size_t)length >= size) {
        clickbox_set_error("the path %s is too long for a socket", path);
        return -1;
    }
    return 0;
}

/* Descriptors that come with the answer: the region, the doorbell, and the packet pool of the owner if the service joins it. */
#define DESCRIPTORS 3
#define POOL_ALIGNMENT (2u << 20)

/* Receives the answer to the registration, with two or three descriptors. */
static ssize_t receive_welcome(int control, uint8_t *bytes, int descriptors[DESCRIPTORS])
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    } space;
    struct iovec part = {.iov_base = bytes, .iov_len = MESSAGE_SIZE};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space};
    ssize_t length;
    do
        length = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    descriptors[0] = descriptors[1] = descriptors[2] = -1;
    if (length <= 0)
        return length;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    size_t size = header && header->cmsg_type == SCM_RIGHTS ? header->cmsg_len - CMSG_LEN(0) : 0;
    if (size == 2 * sizeof(int) || size == 3 * sizeof(int))
        memcpy(descriptors, CMSG_DATA(header), size);
    return length;
}

/* Takes over what the welcome says. */
static int set_up(struct clickbox *box, const uint8_t *bytes, size_t length, int has_pool)
{
    if (length < 168 || get16(bytes) != WELCOME || get32(bytes + 4) != length || get16(bytes + 8) != CLICKBOX_VERSION)
        return -1;
    box->slots = get16(bytes + 10);
    box->faces = get16(bytes + 12);
    box->destinations = get16(bytes + 14);
    box->region_size = get64(bytes + 16);
    uint64_t buffers = get64(bytes + 24);
    box->buffer_count = get32(bytes + 32);
    box->lets_leave = get32(bytes + 36) & LETS_LEAVE;
    box->asks = box->hand_over && get32(bytes + 36) & HANDS_OVER;
    memcpy(box->name, bytes + 40, NAME_SIZE - 1);
    memcpy(box->service, bytes + 104, NAME_SIZE - 1);
    if (box->slots < 64 || box->slots > 2048 || (box->slots & (box->slots - 1)) || box->faces < 1 || box->faces > MAX_FACES ||
        box->destinations > MAX_DESTINATIONS || length != 168 + box->faces * 8 + box->destinations * 72 ||
        box->buffer_count == 0 || box->buffer_count > MAX_BUFFERS || buffers > UINT32_MAX)
        return -1;
    uint64_t end = buffers + (uint64_t)box->buffer_count * CLICKBOX_PACKET_SIZE;
    if (has_pool)
        box->pool_size = (size_t)end;
    else if (end > box->region_size)
        return -1;
    const uint8_t *at = bytes + 168;
    for (unsigned face = 0; face < box->faces; face++, at += 8) {
        uint32_t places[2] = {get32(at), get32(at + 4)};
        for (unsigned way = 0; way < 2; way++)
            if ((places[way] & 63) || (uint64_t)places[way] + SLOTS + 8ull * box->slots > box->region_size)
                return -1;
        /* They are places until the region is mapped. */
        box->receive[face].start = (uint8_t *)(uintptr_t)places[0];
        box->transmit[face].start = (uint8_t *)(uintptr_t)places[1];
    }
    for (unsigned number = 0; number < box->destinations; number++, at += 72) {
        const char *kind = get16(at) == 1 ? "" : get16(at) == 2 ? "port:" : "chain:";
        snprintf(box->destination[number], sizeof box->destination[number], "%s%.*s", kind, NAME_SIZE - 1, (const char *)at + 8);
    }
    box->buffers = (uint8_t *)(uintptr_t)buffers;
    return 0;
}

/* Maps the packet pool at the start of a huge page, so that the kernel can use huge pages where the file has them. */
static int map_pool(struct clickbox *box, int file)
{
    size_t size = box->pool_size + POOL_ALIGNMENT;
    uint8_t *start = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start != MAP_FAILED) {
        uint8_t *aligned = start + (POOL_ALIGNMENT - (uintptr_t)start % POOL_ALIGNMENT) % POOL_ALIGNMENT;
        box->pool = mmap(aligned, box->pool_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
        if (box->pool != MAP_FAILED) {
            /* What remains of the reserved addresses. */
            if (aligned > start)
                munmap(start, (size_t)(aligned - start));
            size_t rest = (size_t)(start + size - aligned) - box->pool_size;
            if (rest >= 4096)
                munmap(start + size - rest, rest);
            return 0;
        }
        munmap(start, size);
    }
    box->pool = NULL;
    clickbox_set_error("the packet pool can't be mapped: %s", strerror(errno));
    return -1;
}

static int map_region(struct clickbox *box, int file)
{
    void *start = mmap(NULL, box->region_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (start == MAP_FAILED) {
        clickbox_set_error("the region can't be mapped: %s", strerror(errno));
        return -1;
    }
    box->region = start;
    box->buffers = (box->pool ? box->pool : box->region) + (uintptr_t)box->buffers;
    for (unsigned face = 0; face < box->faces; face++) {
        box->receive[face].start = box->region + (uintptr_t)box->receive[face].start;
        box->transmit[face].start = box->region + (uintptr_t)box->transmit[face].start;
    }
    return 0;
}

static int connect_and_register(struct clickbox *box, const char *path, uint16_t slots)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint8_t bytes[MESSAGE_SIZE] = {0};
    int descriptors[DESCRIPTORS];
    if (find_socket(path, address.sun_path, sizeof address.sun_path) < 0 || read_token(address.sun_path, bytes + 16) < 0)
        return -1;
    box->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (box->control < 0 || connect(box->control, (struct sockaddr *)&address, sizeof address) < 0) {
        clickbox_set_error("can't connect to %s: %s", address.sun_path, strerror(errno));
        return -1;
    }
    put16(bytes, REGISTER);
    put32(bytes + 4, 48);
    put16(bytes + 8, CLICKBOX_VERSION);
    put16(bytes + 10, slots);
    put32(bytes + 12, box->hand_over ? HANDS_OVER : 0);
    if (send(box->control, bytes, 48, MSG_NOSIGNAL) != 48) {
        clickbox_set_error("can't register at %s: %s", address.sun_path, strerror(errno));
        return -1;
    }
    ssize_t length = receive_welcome(box->control, bytes, descriptors);
    box->doorbell = descriptors[1];
    int result = -1;
    if (length <= 0)
        clickbox_set_error("clickbox closed the connection at %s", address.sun_path);
    else if (length >= 16 && get16(bytes) == REFUSED)
        clickbox_set_error("%.*s", (int)length - 16, bytes + 16);
    else if (descriptors[0] < 0 || set_up(box, bytes, (size_t)length, descriptors[2] >= 0) < 0)
        clickbox_set_error("the answer at %s is of another version: build the function again", address.sun_path);
    else if (descriptors[2] < 0 || map_pool(box, descriptors[2]) == 0)
        result = map_region(box, descriptors[0]);
    for (unsigned number = 0; number < DESCRIPTORS; number += 2)
        if (descriptors[number] >= 0)
            close(descriptors[number]);
    return result;
}

struct clickbox *clickbox_join(const char *path, const struct clickbox_options *options)
{
    struct clickbox *box = calloc(1, sizeof *box);
    if (!box) {
        clickbox_set_error("no memory is left");
        return NULL;
    }
    box->control = box->doorbell = -1;
    box->spin_us = options ? options->spin_us : 0;
    box->hand_over = options ? options->hand_over : NULL;
    if (box->hand_over && (box->hand_over->size > CLICKBOX_STATE_SIZE || !box->hand_over->next ||
                           !box->hand_over->export_flow || !box->hand_over->import_flow)) {
        clickbox_set_error("hand_over has no callback, or states of more than %d bytes", CLICKBOX_STATE_SIZE);
        clickbox_leave(box);
        return NULL;
    }
    if (connect_and_register(box, path, options ? options->slots : 0) < 0) {
        clickbox_leave(box);
        return NULL;
    }
    box->spare = calloc(box->buffer_count, sizeof *box->spare);
    box->messages = calloc(WAITING_MESSAGES, sizeof *box->messages);
    box->request = box->hand_over ? calloc(1, MESSAGE_SIZE) : NULL;
    if (!box->spare || !box->messages || (box->hand_over && !box->request)) {
        clickbox_set_error("no memory is left");
        clickbox_leave(box);
        return NULL;
    }
    box->now = clickbox_clock();
    return box;
}

int clickbox_drain(struct clickbox *box)
{
    uint8_t message[8] = {0};
    box->finished |= box->in != NULL;
    if (box->in || box->leaving)
        return 0;
    if (!box->lets_leave) {
        clickbox_set_error("clickbox is of a version that knows no leaving in order");
        return -1;
    }
    put16(message, LEAVE);
    put32(message + 4, sizeof message);
    if (send(box->control, message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        clickbox_set_error("clickbox can't be told now that the function leaves: %s", strerror(errno));
        return -1;
    }
    box->leaving = SAID;
    return 0;
}

void clickbox_leave(struct clickbox *box)
{
    if (!box)
        return;
    if (box->region) {
        clickbox_flush(box);
        box->published = box->now - PUBLISH_INTERVAL;
        publish_counters(box);
        munmap(box->region, box->region_size);
    }
    if (box->pool)
        munmap(box->pool, box->pool_size);
    if (box->in)
        fclose(box->in);
    if (box->out)
        fclose(box->out);
    if (box->in)
        free(box->buffers);
    if (box->control >= 0)
        close(box->control);
    if (box->doorbell >= 0)
        close(box->doorbell);
    free(box->spare);
    free(box->messages);
    free(box->request);
    free(box);
}

const char *clickbox_name(const struct clickbox *box)
{
    return box->name;
}

unsigned clickbox_faces(const struct clickbox *box)
{
    return box->faces;
}

uint64_t clickbox_now(const struct clickbox *box)
{
    return box->in ? box->capture_time : box->now;
}

clickbox_answer clickbox_destination(const struct clickbox *box, const char *name)
{
    unsigned kind = strncmp(name, "port:", 5) == 0 ? 2 : strncmp(name, "chain:", 6) == 0 ? INTO_CHAIN : 1;
    if (box->in)
        return (clickbox_answer)kind;
    for (unsigned number = 0; number < box->destinations; number++)
        if (strcmp(box->destination[number], name) == 0)
            return (clickbox_answer)(number << 3 | kind);
    return CLICKBOX_NOWHERE;
}

clickbox_answer clickbox_with_flow(clickbox_answer to)
{
    return (to & 7) == INTO_CHAIN ? (clickbox_answer)((to & ~7u) | FLOW_INTO_CHAIN) : CLICKBOX_NOWHERE;
}

/* ---- Counters and messages ---- */

uint64_t *clickbox_counter(struct clickbox *box, const char *name)
{
    for (unsigned number = 0; number < box->counters; number++)
        if (strcmp(box->counter[number].name, name) == 0)
            return &box->counter[number].value;
    if (box->counters == MAX_COUNTERS || strlen(name) >= COUNTER_NAME_SIZE)
        return &box->nowhere;
    struct counter *counter = &box->counter[box->counters++];
    snprintf(counter->name, sizeof counter->name, "%s", name);
    return &counter->value;
}

int clickbox_send_message(struct clickbox *box, clickbox_answer to, const void *bytes, size_t length)
{
    uint8_t message[16 + CLICKBOX_MESSAGE_SIZE] = {0};
    if (to == CLICKBOX_NOWHERE) {
        clickbox_set_error("the service may not send there: create it with --may-send-to");
        return -1;
    }
    if (length > CLICKBOX_MESSAGE_SIZE || (to & 7) != 1) {
        clickbox_set_error("a message has at most %d bytes, and goes to a service", CLICKBOX_MESSAGE_SIZE);
        return -1;
    }
    if (box->in)
        return 0;
    put16(message, MESSAGE);
    put32(message + 4, (uint32_t)(16 + length));
    put16(message + 8, (uint16_t)(to >> 3));
    memcpy(message + 16, bytes, length);
    if (send(box->control, message, 16 + length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        clickbox_set_error("the message can't be sent now: %s", strerror(errno));
        return -1;
    }
    return 0;
}

int clickbox_receive_message(struct clickbox *box, char *from, void *bytes)
{
    if (box->message_count == 0)
        return -1;
    struct message *message = &box->messages[box->first_message];
    memcpy(from, message->from, NAME_SIZE);
    memcpy(bytes, message->bytes, message->length);
    box->first_message = (box->first_message + 1) % WAITING_MESSAGES;
    box->message_count--;
    return (int)message->length;
}

void clickbox_stop(struct clickbox *box)
{
    box->stopped = box->stopped + 1;
}

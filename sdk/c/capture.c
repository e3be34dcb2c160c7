/* capture.c: captures in place of a service, in pcap format. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OFFLINE_BUFFERS 4096
#define MICROSECONDS 0xa1b2c3d4u
#define NANOSECONDS 0xa1b23c4du
#define ETHERNET 1

static uint32_t field(const struct clickbox *box, uint32_t value)
{
    return box->swapped ? __builtin_bswap32(value) : value;
}

static int open_captures(struct clickbox *box, const char *read, const char *write)
{
    uint32_t header[6];
    box->in = fopen(read, "rb");
    if (!box->in) {
        clickbox_set_error("%s: %s", read, strerror(errno));
        return -1;
    }
    if (fread(header, sizeof header, 1, box->in) != 1)
        header[0] = 0;
    box->swapped = header[0] == __builtin_bswap32(MICROSECONDS) || header[0] == __builtin_bswap32(NANOSECONDS);
    header[0] = field(box, header[0]);
    box->nanoseconds = header[0] == NANOSECONDS;
    if ((header[0] != MICROSECONDS && !box->nanoseconds) || (field(box, header[5]) & 0xffff) != ETHERNET) {
        clickbox_set_error("%s is no capture of Ethernet packets in pcap format", read);
        return -1;
    }
    if (!write)
        return 0;
    uint32_t made[6] = {NANOSECONDS, 2 | 4 << 16, 0, 0, 65535, ETHERNET};
    box->out = fopen(write, "wb");
    if (!box->out || fwrite(made, sizeof made, 1, box->out) != 1) {
        clickbox_set_error("%s: %s", write, strerror(errno));
        return -1;
    }
    return 0;
}

struct clickbox *clickbox_offline(const char *read, const char *write)
{
    struct clickbox *box = calloc(1, sizeof *box);
    if (!box) {
        clickbox_set_error("no memory is left");
        return NULL;
    }
    box->control = box->doorbell = -1;
    box->faces = 1;
    snprintf(box->name, sizeof box->name, "offline");
    box->buffer_count = OFFLINE_BUFFERS;
    if (open_captures(box, read, write) < 0) {
        clickbox_leave(box);
        return NULL;
    }
    box->buffers = malloc((size_t)OFFLINE_BUFFERS * CLICKBOX_PACKET_SIZE);
    box->spare = calloc(OFFLINE_BUFFERS, sizeof *box->spare);
    if (!box->buffers || !box->spare) {
        clickbox_set_error("no memory is left");
        clickbox_leave(box);
        return NULL;
    }
    while (box->spares < OFFLINE_BUFFERS) {
        box->spare[box->spares] = box->spares;
        box->spares++;
    }
    return box;
}

/* Reads one packet. Returns 0 at the end of the file. */
static int read_packet(struct clickbox *box, struct clickbox_packet *packet)
{
    uint32_t record[4];
    if (fread(record, sizeof record, 1, box->in) != 1)
        return 0;
    uint32_t captured = field(box, record[2]), kept = captured;
    uint64_t part = field(box, record[1]);
    box->capture_time = field(box, record[0]) * 1000000000ull + (box->nanoseconds ? part : part * 1000);
    if (kept > CLICKBOX_PACKET_SIZE)
        kept = CLICKBOX_PACKET_SIZE;
    if (clickbox_new(box, packet, kept) < 0)
        return -1;
    if (fread(packet->data, 1, kept, box->in) != kept || fseek(box->in, (long)(captured - kept), SEEK_CUR) != 0) {
        clickbox_set_error("the capture ends in the middle of a packet");
        return -1;
    }
    return 1;
}

/* Packets are read one by one, so that each has its own time. */
int clickbox_read_capture(struct clickbox *box, struct clickbox_packet *packets, unsigned most)
{
    if (most == 0 || box->stopped)
        return 0;
    clickbox_set_error("%s", "");
    int read = box->finished ? 0 : read_packet(box, packets);
    box->finished |= read == 0;
    return read == 0 ? -1 : read;
}

int clickbox_write_capture(struct clickbox *box, const struct clickbox_packet *packet)
{
    uint32_t record[4] = {(uint32_t)(box->capture_time / 1000000000ull), (uint32_t)(box->capture_time % 1000000000ull),
                          packet->length, packet->length};
    if (!box->out)
        return 0;
    if (fwrite(record, sizeof record, 1, box->out) != 1 || fwrite(packet->data, 1, packet->length, box->out) != packet->length) {
        clickbox_set_error("the capture can't be written: %s", strerror(errno));
        return -1;
    }
    return 0;
}

/* scan.c: searches the payloads of TCP and UDP packets for patterns, all in one pass (Aho and Corasick, 1975).
 *
 * The patterns are in the file $PATTERNS, one a line. A packet with a match goes to the destination $MATCHES, such as
 * `quarantine` or `port:tap0`, which the service needs the right to send to. Without it, the packet is dropped. If $MATCHES is a
 * chain, such as `chain:scrubbed`, the later packets of the flow take it too, without being searched. A pattern that is divided
 * between two packets is not found.
 */
#include "clickbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STATES 65536

struct scanner {
    /* The next state for each byte. State 0 is the start. */
    uint32_t (*next)[256];
    uint8_t *matches;
    uint32_t states;
    clickbox_answer answer;
    uint64_t *scanned, *matched;
};

static int add_pattern(struct scanner *scanner, const char *pattern)
{
    uint32_t state = 0;
    for (const char *at = pattern; *at; at++) {
        uint32_t *next = &scanner->next[state][(uint8_t)*at];
        if (!*next) {
            if (scanner->states == MAX_STATES)
                return -1;
            *next = scanner->states++;
        }
        state = *next;
    }
    scanner->matches[state] = 1;
    return 0;
}

/* Adds what happens after a byte that does not continue a pattern: the longest end of what was read that begins one. */
static int complete(struct scanner *scanner)
{
    uint32_t *failure = calloc(scanner->states, sizeof *failure), *queue = calloc(scanner->states, sizeof *queue);
    uint32_t first = 0, last = 0;
    if (!failure || !queue)
        return -1;
    for (int byte = 0; byte < 256; byte++)
        if (scanner->next[0][byte])
            queue[last++] = scanner->next[0][byte];
    while (first < last) {
        uint32_t state = queue[first++];
        scanner->matches[state] |= scanner->matches[failure[state]];
        for (int byte = 0; byte < 256; byte++) {
            uint32_t *next = &scanner->next[state][byte], after_failure = scanner->next[failure[state]][byte];
            if (*next) {
                failure[*next] = after_failure;
                queue[last++] = *next;
            } else {
                *next = after_failure;
            }
        }
    }
    free(failure);
    free(queue);
    return 0;
}

static int read_patterns(struct scanner *scanner, const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return -1;
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] && add_pattern(scanner, line) < 0) {
            fprintf(stderr, "%s has more than %d bytes of patterns\n", path, MAX_STATES);
            fclose(file);
            return -1;
        }
    }
    fclose(file);
    return complete(scanner);
}

static int start(struct clickbox *box, void *state)
{
    struct scanner *scanner = state;
    const char *destination = getenv("MATCHES");
    scanner->scanned = clickbox_counter(box, "scanned");
    scanner->matched = clickbox_counter(box, "matched");
    scanner->answer = destination ? clickbox_destination(box, destination) : CLICKBOX_DROP;
    if (scanner->answer == CLICKBOX_NOWHERE) {
        fprintf(stderr, "the service may not send to %s: create it with --may-send-to\n", destination);
        return 2;
    }
    clickbox_answer with_flow = clickbox_with_flow(scanner->answer);
    if (with_flow != CLICKBOX_NOWHERE)
        scanner->answer = with_flow;
    return 0;
}

static clickbox_answer scan(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    struct scanner *scanner = state;
    struct clickbox_headers headers;
    uint32_t at = 0;
    (void)box;
    if (clickbox_headers(packet, &headers) < 0 || !headers.payload)
        return CLICKBOX_NEXT;
    ++*scanner->scanned;
    for (uint32_t byte = 0; byte < headers.payload_length; byte++) {
        at = scanner->next[at][headers.payload[byte]];
        if (scanner->matches[at]) {
            ++*scanner->matched;
            return scanner->answer;
        }
    }
    return CLICKBOX_NEXT;
}

int main(int argc, char **argv)
{
    const char *patterns = getenv("PATTERNS");
    struct scanner scanner = {.states = 1};
    scanner.next = calloc(MAX_STATES, sizeof *scanner.next);
    scanner.matches = calloc(MAX_STATES, 1);
    if (!patterns || !scanner.next || !scanner.matches) {
        fprintf(stderr, "set PATTERNS to a file with a pattern in each line\n");
        return 2;
    }
    if (read_patterns(&scanner, patterns) < 0)
        return 2;
    struct clickbox_function function = {.packet = scan, .start = start, .state = &scanner};
    return clickbox_main(argc, argv, &function);
}

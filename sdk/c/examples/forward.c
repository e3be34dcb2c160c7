/* forward.c: sends every packet on in its chain. */
#include "clickbox.h"

static clickbox_answer forward(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    (void)box, (void)packet, (void)state;
    return CLICKBOX_NEXT;
}

int main(int argc, char **argv)
{
    struct clickbox_function function = {.packet = forward};
    return clickbox_main(argc, argv, &function);
}

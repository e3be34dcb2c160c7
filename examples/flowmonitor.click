// A flow monitor: gives every packet the number of its flow and counts packets by flow.
//
// `flows` finds the flow of a packet by addresses, ports and protocol; `counts` keeps a count for each number. Read
// `counts.nagg` for the number of flows and write a file's name to `counts.write_text_file` for all of them.
//
// Parameters: FRAME the start of each frame (repeated up to LENGTH bytes), LIMIT frames in all, BURST frames at a turn.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> Strip(14)
    -> CheckIPHeader
    -> flows :: AggregateIPFlows
    -> counts :: AggregateCounter
    -> Unstrip(14)
    -> out :: Counter
    -> Discard;

// A flow monitor: annotates every packet with the number of its flow, and counts packets per flow.
//
// `flows` finds the flow of a packet by addresses, ports and protocol. `counts` counts packets per flow number. Read
// `counts.nagg` for the number of flows. Write a file name to `counts.write_text_file` to save all counts.
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source.

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

// A load balancer: spreads flows over four servers, all packets of a flow to the same one.
//
// The hash is of the bytes from 26 to 37 of the frame: both IPv4 addresses and both ports. The chosen server gets the
// frame by its Ethernet address; it answers to the shared IP address itself (direct server return).
//
// Parameters: FRAME the start of each frame (repeated up to LENGTH bytes), LIMIT frames in all, BURST frames at a turn.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> balance :: HashSwitch(26, 12);

balance [0] -> StoreEtherAddress(02:00:00:00:01:01, dst) -> one :: Counter -> out :: Counter -> Discard;
balance [1] -> StoreEtherAddress(02:00:00:00:01:02, dst) -> two :: Counter -> out;
balance [2] -> StoreEtherAddress(02:00:00:00:01:03, dst) -> three :: Counter -> out;
balance [3] -> StoreEtherAddress(02:00:00:00:01:04, dst) -> four :: Counter -> out;

// Intrusion detection: frames whose payload begins with a known pattern are reported, all others pass.
//
// A pattern is OFFSET/BYTES; here the offset is that of the payload of UDP without IP options (14 + 20 + 8). The
// pattern is `GET /evil`. The elements that search a whole payload are another matter: this is a match in place.
//
// Parameters: FRAME the start of each frame (repeated up to LENGTH bytes), LIMIT frames in all, BURST frames at a turn.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> patterns :: Classifier(42/474554202f6576696c, -);
patterns [0] -> alerts :: Counter -> Discard;
patterns [1] -> out :: Counter -> Discard;

// Intrusion detection: frames whose payload begins with a known pattern are counted as alerts, all others pass.
//
// A pattern is OFFSET/BYTES. The offset here is that of a UDP payload without IP options (14 + 20 + 8), and the bytes
// are `GET /evil`. The pattern matches at this offset only; the rest of the payload is not searched.
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> patterns :: Classifier(42/474554202f6576696c, -);
patterns [0] -> alerts :: Counter -> Discard;
patterns [1] -> out :: Counter -> Discard;

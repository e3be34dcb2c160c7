//! The state of a flow with any bytes, in each rewriter; then packets of the flow.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    fuzz::flow_state::take_over(*choice, rest);
});

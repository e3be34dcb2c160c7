//! The flows of a function, as an element hands them over.

use alloc::vec::Vec;
use core::time::Duration;

use element::{Args, Context, FlowStates, FlowTuple, FlowTuples, ImportError};

use crate::contract::{Function, Running};
use crate::flow_key::FlowKey;
use crate::hand_over::{HEADER, MAX_STATE_BYTES};

fn tuple(key: FlowKey) -> FlowTuple {
    let [one, other] = key.ends;
    FlowTuple::new(key.protocol, one, other)
}

fn key(tuple: FlowTuple) -> FlowKey {
    FlowKey { ends: tuple.ends, protocol: tuple.protocol }
}

impl<F: Function> FlowStates for Running<F> {
    fn format(&self) -> (&'static str, u32) {
        (F::Args::INFO.name, F::HAND_OVER.map_or(0, |hand_over| hand_over.version))
    }

    fn next(&self, position: u64) -> Option<(u64, FlowTuples)> {
        let (handle, key) = self.flows().at_or_after(u32::try_from(position).ok()?)?;
        Some((u64::from(handle) + 1, [tuple(key); 2]))
    }

    fn find(&self, tuple: FlowTuple) -> Option<FlowTuples> {
        self.flows().find(key(tuple)).map(|_| [tuple; 2])
    }

    fn export(&mut self, tuple: FlowTuple, cx: &Context) -> Option<(FlowTuples, Vec<u8>)> {
        let state = (F::HAND_OVER?.export)(self.flows().find(key(tuple))?);
        if state.len() > MAX_STATE_BYTES {
            return None;
        }
        let left = self.flows().left(key(tuple), cx.steady())?;
        self.flows_mut().remove(key(tuple));
        let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
        Some(([tuple; 2], [&left.to_be_bytes(), state.as_slice()].concat()))
    }

    fn import(&mut self, tuples: FlowTuples, payload: &[u8], cx: &Context) -> Result<(), ImportError> {
        let (left, state) = payload.split_first_chunk::<HEADER>().ok_or(ImportError::Malformed)?;
        let hand_over = F::HAND_OVER.ok_or(ImportError::Format)?;
        let state = (hand_over.import)(state).ok_or(ImportError::Malformed)?;
        let left = Duration::from_nanos(u64::from_be_bytes(*left));
        self.flows_mut().take_over(key(tuples[0]), state, left, cx.steady())
    }
}

//! Faults of fabrics in simulations: an order of this thread ends its fabric, before or after it is executed.

#[cfg(not(test))]
use crate::error::OperationError;

/// Sends an order.
#[cfg(not(test))]
pub(super) fn with_fault<T>(ask: impl FnOnce() -> Result<T, OperationError>) -> Result<T, OperationError> {
    ask()
}

#[cfg(test)]
pub(super) use planned::with_fault;
#[cfg(test)]
pub(crate) use planned::{Fault, plan_fault};

#[cfg(test)]
mod planned {
    use crate::error::OperationError;
    use protocol::fabric::FabricError;
    use std::cell::RefCell;

    /// A fault that is to come.
    pub(crate) struct Fault {
        /// The orders before the one that it hits.
        pub(crate) orders: u32,
        /// That order is executed, and its answer is lost.
        pub(crate) is_executed: bool,
        /// Ends the fabric.
        pub(crate) end: Box<dyn FnOnce()>,
    }

    thread_local! {
        static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
    }

    /// Plans a fault of the orders of this thread, or none. Returns the earlier one if it has not come.
    pub(crate) fn plan_fault(fault: Option<Fault>) -> Option<Fault> {
        FAULT.replace(fault)
    }

    /// Sends an order, possibly with a fault.
    pub(in crate::fabric) fn with_fault<T>(
        ask: impl FnOnce() -> Result<T, OperationError>,
    ) -> Result<T, OperationError> {
        let Some(mut fault) = plan_fault(None) else { return ask() };
        if fault.orders > 0 {
            fault.orders -= 1;
            plan_fault(Some(fault));
            return ask();
        }
        if !fault.is_executed {
            (fault.end)();
            return ask();
        }
        let answer = ask();
        (fault.end)();
        answer.and(Err(FabricError::Disconnected.into()))
    }
}

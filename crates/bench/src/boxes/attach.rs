//! Attachment of boxes to switches.

use crate::error::MeasureError;
use sandbox::{Sandbox, SharedRegion, SystemError};
use std::sync::Arc;
use switch::driver::BoxPort;
use switch::{Forward, PortId, PortSettings, SwitchRunner};

/// The switch's side of a box's port.
pub(crate) fn port(sandbox: &mut Sandbox, index: usize) -> Result<BoxPort<Arc<SharedRegion>>, MeasureError> {
    let port = sandbox.take_port(index).ok_or(MeasureError::NoPort(index))?;
    let doorbell = sandbox.doorbell();
    Ok(BoxPort::new(port, move || doorbell.ring()))
}

/// Attaches a port of a box to a switch.
pub(crate) fn attach<F: Forward>(
    switch: &mut SwitchRunner<F>,
    sandbox: &mut Sandbox,
    index: usize,
) -> Result<PortId, MeasureError> {
    Ok(switch.add_port(Box::new(port(sandbox, index)?), PortSettings::default())?)
}

pub(crate) fn system(cause: std::io::Error) -> MeasureError {
    MeasureError::System(SystemError { action: "create a switch", cause })
}

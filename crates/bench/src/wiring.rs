//! Boxes on switches.

use crate::error::Error;
use sandbox::{Area, Sandbox, SystemError};
use std::sync::Arc;
use switch::driver::BoxPort;
use switch::{Forward, PortId, PortSettings, SwitchRunner};

/// The switch's side of a box's port.
pub(crate) fn port(sandbox: &mut Sandbox, index: usize) -> Result<BoxPort<Arc<Area>>, Error> {
    let port = sandbox.take_port(index).ok_or(Error::NoPort(index))?;
    let doorbell = sandbox.doorbell();
    Ok(BoxPort::new(port, move || doorbell.ring()))
}

/// Puts a port of a box on a switch.
pub(crate) fn attach<F: Forward>(
    switch: &mut SwitchRunner<F>,
    sandbox: &mut Sandbox,
    index: usize,
) -> Result<PortId, Error> {
    Ok(switch.add_port(Box::new(port(sandbox, index)?), PortSettings::default())?)
}

pub(crate) fn system(cause: std::io::Error) -> Error {
    Error::System(SystemError { action: "make a switch", cause })
}

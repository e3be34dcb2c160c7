//! Which fabric an order goes to.

use api::{BoxName, CapturePoint, Owner, SwitchName};
use protocol::fabric::Ask;
use protocol::fabric::orders::{
    AddFlow, AddPort, AddSwitch, Addresses, AlterBox, Capture, CheckVacant, ControllerReport,
    ControllerStates, DefineBox, DuplicateDevice, Files, Flows, ForgetBox, Install, KillBox, LaunchBox, Log,
    NewPortNumbers, OpenFile, PortNumbers, Ports, ReadHandler, ReattachBox, Redefine, RemoveAddress,
    RemoveConfiguration, RemoveFlow, RemovePort, RemoveSwitch, ReopenPort, ResumeBox, ServeFunctions,
    SetAddress, SetDefault, SetPortNumbers, SetSteering, StartBox, Steering, StopBox, SuspendBox,
    WriteHandler, Writes,
};

/// What an order is about.
#[derive(Debug)]
pub(crate) enum OrderTarget<'a> {
    /// A box.
    Box(&'a BoxName),
    /// A switch.
    Switch(&'a SwitchName),
    /// A box that the order creates, and its owner.
    NewBox(&'a BoxName, &'a Owner),
    /// A switch that the order creates, and its owner.
    NewSwitch(&'a SwitchName, &'a Owner),
}

/// An order that concerns one box or one switch.
pub(crate) trait Route: Ask {
    fn target(&self) -> OrderTarget<'_>;
}

macro_rules! routes {
    ($kind:ident, $field:ident: $($order:ident),* $(,)?) => {$(
        impl Route for $order {
            fn target(&self) -> OrderTarget<'_> {
                OrderTarget::$kind(&self.$field)
            }
        }
    )*};
}

routes!(
    Box, name: ForgetBox, StartBox, StopBox, SuspendBox, ResumeBox, KillBox, ReattachBox, Install,
    Redefine, RemoveConfiguration, ReadHandler, WriteHandler, Writes, Log, Files, OpenFile,
);
routes!(
    Switch, switch: RemoveSwitch, CheckVacant, AddPort, ReopenPort, DuplicateDevice, RemovePort, SetAddress, RemoveAddress, SetDefault,
    Addresses, ControllerReport, ControllerStates, AddFlow, RemoveFlow, Flows, ServeFunctions, SetSteering,
    Steering, Ports, PortNumbers, NewPortNumbers, SetPortNumbers,
);

impl Route for DefineBox {
    fn target(&self) -> OrderTarget<'_> {
        OrderTarget::NewBox(&self.definition.name, &self.definition.owner)
    }
}

impl Route for LaunchBox {
    fn target(&self) -> OrderTarget<'_> {
        OrderTarget::NewBox(&self.definition.name, &self.definition.owner)
    }
}

impl Route for AlterBox {
    fn target(&self) -> OrderTarget<'_> {
        OrderTarget::Box(&self.definition.name)
    }
}

impl Route for AddSwitch {
    fn target(&self) -> OrderTarget<'_> {
        OrderTarget::NewSwitch(&self.definition.name, &self.definition.owner)
    }
}

impl Route for Capture {
    fn target(&self) -> OrderTarget<'_> {
        match &self.point {
            CapturePoint::Box(name, _) => OrderTarget::Box(name),
            CapturePoint::Switch(name, _) => OrderTarget::Switch(name),
        }
    }
}

//! Which fabric an order goes to.

use api::{BoxName, CapturePoint, Owner, SwitchName};
use protocol::fabric::Ask;
use protocol::fabric::orders::{
    AddPort, AddSwitch, Addresses, AlterBox, Capture, CheckVacant, DefineBox, Files, ForgetBox, Install,
    KillBox, Log, OpenFile, Ports, ReadHandler, ReattachBox, Redefine, RemoveAddress, RemoveConfiguration,
    RemovePort, RemoveSwitch, ReopenPort, ResumeBox, SetAddress, SetDefault, StartBox, StopBox, SuspendBox,
    WriteHandler, Writes,
};

/// What an order is about.
#[derive(Debug)]
pub(crate) enum Place<'a> {
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
    fn place(&self) -> Place<'_>;
}

macro_rules! routes {
    ($kind:ident, $field:ident: $($order:ident),* $(,)?) => {$(
        impl Route for $order {
            fn place(&self) -> Place<'_> {
                Place::$kind(&self.$field)
            }
        }
    )*};
}

routes!(
    Box, name: ForgetBox, StartBox, StopBox, SuspendBox, ResumeBox, KillBox, ReattachBox, Install,
    Redefine, RemoveConfiguration, ReadHandler, WriteHandler, Writes, Log, Files, OpenFile,
);
routes!(
    Switch, switch: RemoveSwitch, CheckVacant, AddPort, ReopenPort, RemovePort, SetAddress, RemoveAddress, SetDefault,
    Addresses, Ports,
);

impl Route for DefineBox {
    fn place(&self) -> Place<'_> {
        Place::NewBox(&self.definition.name, &self.definition.owner)
    }
}

impl Route for AlterBox {
    fn place(&self) -> Place<'_> {
        Place::Box(&self.definition.name)
    }
}

impl Route for AddSwitch {
    fn place(&self) -> Place<'_> {
        Place::NewSwitch(&self.definition.name, &self.definition.owner)
    }
}

impl Route for Capture {
    fn place(&self) -> Place<'_> {
        match &self.point {
            CapturePoint::Box(name, _) => Place::Box(name),
            CapturePoint::Switch(name, _) => Place::Switch(name),
        }
    }
}

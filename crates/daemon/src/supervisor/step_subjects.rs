//! The objects that the steps of applying a stack are about, for messages.

use super::stacks::StackStep;
use super::steering_step::SteeringStep;
use api::Subject;

impl StackStep {
    /// The object whose definition it follows, if it is one.
    pub(super) fn subject(&self) -> Option<Subject> {
        match self {
            Self::MakeSwitch(wanted) => Some((&wanted.name).into()),
            Self::AddPort(switch, port, _) => Some((switch, &port.name).into()),
            Self::ShareSwitch(switch, _) | Self::ChangeFlows(switch, _) => Some(switch.into()),
            Self::MakeBox(wanted) | Self::Alter(_, wanted) => Some((&wanted.name).into()),
            Self::Steering(step) => step.subject(),
            _ => None,
        }
    }
}

impl SteeringStep {
    /// The object whose definition it follows, if it is one.
    fn subject(&self) -> Option<Subject> {
        match self {
            Self::Remake(wanted) | Self::Alter(wanted) => Some((&wanted.name).into()),
            Self::Reload(name, _) | Self::Scale(name, _) => Some(name.into()),
            Self::MakeChain(wanted) | Self::SetChain(wanted) => Some((&wanted.switch, &wanted.name).into()),
            Self::Declare(_) | Self::RemoveServices(_) | Self::RemoveChain(..) | Self::Keep(..) => None,
        }
    }
}

//! Services and chains of steering switches.

use super::attach::Network;
use super::flows::malformed;
use crate::error::OperationError;
use model::SwitchName;
use protocol::fabric::{SteeringDefinition, SteeringReply};

impl Network {
    /// Gives a steering switch other services and chains.
    pub(crate) fn set_steering(
        &mut self,
        _: &SwitchName,
        _: SteeringDefinition,
    ) -> Result<(), OperationError> {
        Err(malformed("services are not supported"))
    }

    /// The state of the services and chains of a steering switch.
    pub(crate) fn steering_reply(&mut self, _: &SwitchName) -> Result<SteeringReply, OperationError> {
        Err(malformed("services are not supported"))
    }
}

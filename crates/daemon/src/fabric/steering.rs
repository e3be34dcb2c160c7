//! Orders about the services and chains of switches. A test can stand in for the fabric.

use super::fabrics::Fabrics;
use crate::error::OperationError;
use api::SwitchName;
use protocol::fabric::{SteeringDefinition, SteeringReply, orders};

impl Fabrics {
    /// Gives a switch these services and chains instead of those that it has.
    pub(crate) fn set_steering(
        &self,
        switch: SwitchName,
        steering: SteeringDefinition,
    ) -> Result<(), OperationError> {
        #[cfg(test)]
        if let Some(result) = self.stand_in.set(&switch, &steering) {
            return result;
        }
        self.ask(orders::SetSteering { switch, steering })
    }

    /// The state of the services and chains of a switch.
    pub(crate) fn steering(&self, switch: SwitchName) -> Result<SteeringReply, OperationError> {
        #[cfg(test)]
        if let Some(reply) = self.stand_in.reply(&switch) {
            return Ok(reply);
        }
        self.ask(orders::Steering { switch })
    }
}

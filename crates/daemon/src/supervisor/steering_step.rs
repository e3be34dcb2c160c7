//! The steps of applying a stack that concern services and chains.

use crate::store::StoredSteering;
use api::{ChainName, CreateChain, CreateService, Install, ScaleService, ServiceName, SwitchName};

/// A step of applying a stack that concerns services or chains.
#[derive(Debug)]
pub(super) enum SteeringStep {
    /// Adds services without instances, all at once, because they may send to each other.
    Declare(Vec<CreateService>),
    /// Removes the instances of a service, and makes those of another definition. Chains keep it meanwhile.
    Remake(Box<CreateService>),
    /// Changes settings of instances that may be running.
    Alter(Box<CreateService>),
    Reload(ServiceName, Box<Install>),
    Scale(ServiceName, ScaleService),
    /// Removes services, all at once, because they may send to each other.
    RemoveServices(Vec<ServiceName>),
    MakeChain(CreateChain),
    SetChain(CreateChain),
    RemoveChain(SwitchName, ChainName),
    /// Gives a switch the services and chains of the one that it replaces.
    Keep(SwitchName, StoredSteering),
}

/// The steps for the services and chains of a stack, in parts between which flows are changed.
#[derive(Debug, Default)]
pub(super) struct SteeringPlan {
    pub(super) first: Vec<SteeringStep>,
    pub(super) last: Vec<SteeringStep>,
}

//! Stands in for the fabrics in tests of services and chains.

use crate::error::OperationError;
use api::{BoxName, ChainStatus, HopStatus, HopTraffic, InstanceStatus, SwitchName};
use protocol::fabric::{FabricError, SteeringDefinition, SteeringReply};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Stands in for the fabric, if it is begun: records the definitions, and answers with flows as a test wants.
#[derive(Debug, Default)]
pub(crate) struct StandIn(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_begun: bool,
    fails: bool,
    orders: Vec<(SwitchName, SteeringDefinition)>,
    present: BTreeMap<SwitchName, SteeringDefinition>,
    flows: BTreeMap<BoxName, u64>,
    lost: BTreeMap<BoxName, u64>,
}

impl StandIn {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn begin(&self) {
        self.state().is_begun = true;
    }

    /// Refuses definitions, or takes them again.
    pub(crate) fn fail(&self, fails: bool) {
        self.state().fails = fails;
    }

    /// The definitions that the fabric got since the last call.
    pub(crate) fn take(&self) -> Vec<(SwitchName, SteeringDefinition)> {
        std::mem::take(&mut self.state().orders)
    }

    /// Gives an instance this number of flows.
    pub(crate) fn set_flows(&self, name: &str, flows: u64) {
        self.state().flows.insert(name.parse().unwrap(), flows);
    }

    /// Lets an instance have lost this number of packets.
    pub(crate) fn set_lost(&self, name: &str, lost: u64) {
        self.state().lost.insert(name.parse().unwrap(), lost);
    }

    pub(in crate::fabric) fn set(
        &self,
        switch: &SwitchName,
        steering: &SteeringDefinition,
    ) -> Option<Result<(), OperationError>> {
        let mut state = self.state();
        if !state.is_begun {
            return None;
        }
        if state.fails {
            return Some(Err(FabricError::Flow("refused by the test".into()).into()));
        }
        state.orders.push((switch.clone(), steering.clone()));
        state.present.insert(switch.clone(), steering.clone());
        Some(Ok(()))
    }

    pub(in crate::fabric) fn reply(&self, switch: &SwitchName) -> Option<SteeringReply> {
        let state = self.state();
        if !state.is_begun {
            return None;
        }
        let present = state.present.get(switch).cloned().unwrap_or_default();
        let services = present.services.into_iter().map(|service| {
            let instances = service.instances.into_iter().map(|instance| InstanceStatus {
                up: true,
                suspended: false,
                draining: instance.draining,
                flows: state.flows.get(&instance.name).copied().unwrap_or(0),
                packets: 0,
                overruled: 0,
                counters: BTreeMap::new(),
                translation: None,
                waiting: 0,
                lost: state.lost.get(&instance.name).copied().unwrap_or(0),
                handover: None,
                taken_over: 0,
                name: instance.name,
            });
            (service.name, instances.collect())
        });
        let chains = present.chains.into_iter().map(|chain| ChainStatus {
            hops: chain
                .services
                .iter()
                .map(|service| HopStatus {
                    service: service.clone(),
                    traffic: [HopTraffic::default(); 2],
                    mean_ns: None,
                    waiting: 0,
                })
                .collect(),
            left: [HopTraffic::default(); 2],
            chain,
        });
        Some(SteeringReply {
            services: services.collect(),
            chains: chains.collect(),
            removed: Vec::new(),
            no_instance: Vec::new(),
            overruled: Vec::new(),
        })
    }
}

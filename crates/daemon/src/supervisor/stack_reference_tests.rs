//! Tests of stacks whose parts name a part that the stack no longer has.

use super::service_tests::{bed, chain, refused, service};
use api::{CreateChain, CreateService, CreateSwitch, Stack, SwitchMode, SwitchName};

fn own() -> SwitchName {
    "own".parse().unwrap()
}

/// A stack with a steering switch, two services, a chain of each, and a flow that leads to the first chain.
fn stack() -> Stack {
    let services = ["ids", "scrub"].map(|name| CreateService {
        switch: own(),
        may_send_to: Default::default(),
        ..service(name, 1)
    });
    let chains = [("web", "ids"), ("dns", "scrub")].map(|(name, through)| CreateChain {
        switch: own(),
        from: None,
        to: format!("{through}-1.0").parse().unwrap(),
        both_ways: false,
        ..chain(name, &[through])
    });
    let flows = vec![serde_json::from_str(r#"{"match": "udp", "output": "chain:web"}"#).unwrap()];
    let switch = CreateSwitch { mode: SwitchMode::Steering, flows, ..CreateSwitch::new(own()) };
    Stack { switches: vec![switch], services: services.into(), chains: chains.into(), ..Stack::default() }
}

#[test]
fn parts_that_others_of_the_stack_name_are_not_removed() {
    let bed = bed();
    let edge = "edge".parse().unwrap();
    assert_eq!(bed.apply_stack(&edge, stack()).unwrap().changes.len(), 5);
    let mut without_service = stack();
    without_service.services.retain(|service| service.name.as_str() != "scrub");
    assert_eq!(
        refused(bed.apply_stack(&edge, without_service.clone())),
        "chain own/dns: there is no service scrub"
    );
    let mut without_chain = stack();
    without_chain.chains.retain(|chain| chain.name.as_str() != "web");
    assert_eq!(refused(bed.apply_stack(&edge, without_chain.clone())), "switch own has no chain web");
    assert!(bed.diff_stack(&edge, &stack()).unwrap().changes.is_empty(), "nothing was changed");

    // Without what names them, they can go.
    without_service.chains.retain(|chain| chain.name.as_str() != "dns");
    assert_eq!(bed.apply_stack(&edge, without_service).unwrap().changes.len(), 2);
    without_chain.switches[0].flows.clear();
    without_chain.chains.clear();
    assert_eq!(bed.apply_stack(&edge, without_chain).unwrap().changes.len(), 3);
}

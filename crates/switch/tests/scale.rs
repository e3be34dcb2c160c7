//! Steering at its full size: a thousand services, ten thousand rules, and a service with all its replicas.

use switch::{
    ChainPlan, ChainsPlan, Decision, Field, Flow, FlowOutput, Forward, FrameHead, FrameMark, InstancePlan,
    Match, PortId, PortKey, ServicePlan, Steering, SteeringSettings,
};

const SERVICES: u16 = 1000;
const REPLICAS: u8 = 128;
const RULES: u16 = 10_000;
const UPLINK: PortId = PortId(0);
const WAN: PortId = PortId(1);
/// The first port of an instance.
const FIRST: u16 = 10;
/// The first port of the service with many replicas.
const WIDE: u16 = FIRST + SERVICES;

fn key(port: PortId) -> PortKey {
    PortKey(port.0 + 1)
}

/// A UDP frame between these ports.
fn frame(source: u16, destination: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 9, 9, 9]);
    frame[34..36].copy_from_slice(&source.to_be_bytes());
    frame[36..38].copy_from_slice(&destination.to_be_bytes());
    frame
}

fn service(number: u16, ports: impl Iterator<Item = PortId>) -> ServicePlan {
    let instance =
        |(slot, port)| InstancePlan { slot, ports: [key(port); 2], is_draining: false, range: None };
    ServicePlan {
        number,
        instances: (0..).zip(ports).map(instance).collect(),
        destinations: Vec::new(),
        translation: None,
    }
}

/// A switch with these services, whose instances are all connected, and a chain of each list.
fn steering(services: Vec<ServicePlan>, chains: &[Vec<u16>]) -> Steering {
    let settings = SteeringSettings { seed: [3, 4], ..SteeringSettings::default() };
    let mut steering = Steering::new(settings);
    for port in [UPLINK, WAN] {
        assert!(steering.set_port_key(port, key(port)));
    }
    for instance in services.iter().flat_map(|service| &service.instances) {
        let port = PortId(instance.ports[0].0 - 1);
        assert!(steering.set_port_key(port, instance.ports[0]));
        steering.resume_port(port);
    }
    let chain = |(number, services): (u16, &Vec<u16>)| ChainPlan {
        number,
        services: services.clone(),
        from: None,
        to: key(WAN),
        both_ways: false,
    };
    steering.set_chains(&ChainsPlan { services, chains: (0..).zip(chains).map(chain).collect() });
    steering
}

fn decide(steering: &mut Steering, frame: &[u8], from: PortId, mark: FrameMark) -> Decision {
    let mut decisions = [Decision::Drop];
    steering.decide_heads(&[FrameHead { head: frame, length: frame.len(), mark }], from, 1, &mut decisions);
    decisions[0]
}

/// The ports of functions that a frame passes, until it leaves at `WAN`.
fn path(steering: &mut Steering, frame: &[u8]) -> Vec<PortId> {
    let (mut from, mut mark, mut path) = (UPLINK, FrameMark::default(), Vec::new());
    loop {
        match decide(steering, frame, from, mark) {
            Decision::ToFunction(to, tag) => {
                path.push(to);
                (from, mark) = (to, FrameMark { tag, meta: 0 });
            }
            decision => {
                assert_eq!(decision, Decision::To(WAN), "after {path:?}");
                return path;
            }
        }
    }
}

#[test]
fn a_thousand_services_have_ten_thousand_rules() {
    let own = |number: u16| service(number, std::iter::once(PortId(FIRST + number)));
    let mut services: Vec<_> = (0..SERVICES).map(own).collect();
    services.push(service(SERVICES, (0..u16::from(REPLICAS)).map(|slot| PortId(WIDE + slot))));
    let chains: Vec<_> = (0..SERVICES).map(|number| vec![number, SERVICES]).collect();
    let mut steering = steering(services, &chains);
    for rule in 0..RULES {
        let matching = Match::any()
            .with(Field::EthType, 0x0800)
            .and_then(|all| all.with(Field::IpProto, 17))
            .and_then(|all| all.with(Field::UdpDst, rule.into()));
        let flow = Flow {
            id: rule.into(),
            matches: vec![matching.unwrap()],
            from: None,
            priority: 5,
            output: FlowOutput::Chain(rule % SERVICES),
            idle_timeout: None,
            hard_timeout: None,
        };
        steering.add_flow(flow, 0).unwrap();
    }
    assert_eq!(steering.len(), usize::from(RULES));
    let mut at_replicas = [0u64; REPLICAS as usize];
    for rule in 0..RULES {
        let path = path(&mut steering, &frame(4000, rule));
        let [first, second] = path[..] else { panic!("{path:?}") };
        assert_eq!(first, PortId(FIRST + rule % SERVICES));
        at_replicas[usize::from(second.0 - WIDE)] += 1;
    }
    assert!(at_replicas.iter().all(|flows| *flows > 0), "{at_replicas:?}");
    assert_eq!(decide(&mut steering, &frame(4000, RULES), UPLINK, FrameMark::default()), Decision::FlowMiss);
    let chains = steering.chains();
    for number in 0..SERVICES {
        let counters = chains.counters(number).unwrap();
        let hops: Vec<_> =
            counters.hops.iter().map(|[forward, reverse]| (forward.packets, *reverse)).collect();
        assert_eq!(hops, [(10, Default::default()); 2], "chain {number}");
        assert_eq!((counters.left[0].packets, counters.left[0].bytes, counters.left[0].lost), (10, 600, 0));
    }
    let replicas = chains.instances(SERVICES);
    let counted: Vec<_> = replicas.iter().map(|found| (found.packets, found.flows)).collect();
    assert_eq!(counted, at_replicas.map(|flows| (flows, flows)));
}

#[test]
fn sixty_thousand_flows_are_spread_over_eight_replicas() {
    let mut steering = steering(vec![service(0, (0..8).map(|slot| PortId(FIRST + slot)))], &[vec![0]]);
    let flow = Flow {
        id: 1,
        matches: vec![Match::any()],
        from: None,
        priority: 5,
        output: FlowOutput::Chain(0),
        idle_timeout: None,
        hard_timeout: None,
    };
    steering.add_flow(flow, 0).unwrap();
    for flow in 0..60_000u32 {
        let frame = frame((flow % 1000) as u16, (flow / 1000) as u16);
        assert_eq!(path(&mut steering, &frame).len(), 1);
    }
    let replicas = steering.chains().instances(0);
    let flows: Vec<_> = replicas.iter().map(|found| found.flows).collect();
    assert_eq!((flows.len(), flows.iter().sum::<u64>()), (8, 60_000));
    assert!(flows.iter().all(|flows| flows.abs_diff(7500) <= 375), "{flows:?}");
}

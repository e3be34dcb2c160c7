//! The time from the end of an instance of a service to the next packet of its flow, which another instance passes.

use api::{
    AddFlow, Attachment, BoxName, CreateBox, CreateChain, CreateService, FlowOutput, Limits, PortRequest,
    Restart, Sandbox, SwitchMode, Translation, operation,
};
use boundary::PlatformKind;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::daemon_boot::{Arrivals, Daemon, SINK, SWITCH, name};
use super::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{Times, milliseconds};

/// Instances that are killed in a run. A box that crashes again and again restarts ever later.
const DEATHS: usize = 10;

/// The service, its instances, and the source of the packets of one flow, 20,000 a second.
const SERVICE: &str = "nat";
const SOURCE: &str = "source";
const PACKETS: &str = "RatedSource(LENGTH 18, RATE 20000) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
    -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0); FromDevice(0) -> Discard;";

/// Translates the source port: to a number that tells the instance.
const NAT: &str = "define($TRANSLATE_ADDRESS 203.0.113.1, $TRANSLATE_PORTS 1024-65535);
    nat :: IPRewriter(pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1, drop);
    FromDevice(0) -> Strip(14) -> CheckIPHeader -> nat; nat[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]nat; nat[1] -> Unstrip(14) -> ToDevice(0);";
const RANGE: &str = "203.0.113.1:1024-65535";

/// The place of the source port in a frame.
const SOURCE_PORT: usize = 14 + 20;

/// Pause between two looks at whether a box runs again.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// Kills the instance with the flow, again and again, with a daemon of its own, `program daemon`. Processes only: a virtual
/// machine is no process of its own that could be killed.
pub(crate) fn service_death(
    bed: &TestBed,
    program: &Path,
    plan: SamplePlan,
) -> Result<Option<Times>, MeasureError> {
    if bed.platform() != PlatformKind::Process {
        return Ok(None);
    }
    let mut all = Vec::new();
    for _ in 0..plan.runs.max(1) {
        let daemon = bed.on_all_cores(|| Daemon::start(program))?;
        let arrivals = daemon.prepare(SwitchMode::Steering, translated_port)?;
        daemon.prepare_service()?;
        let times = (0..DEATHS).map(|_| daemon.kill_instance(&arrivals)).collect::<Result<Vec<_>, _>>()?;
        all.push(Times::of(&times));
    }
    Ok(Some(Times::median(&all)))
}

/// The source port of a frame that was translated.
fn translated_port(frame: &[u8]) -> Option<u32> {
    let port = frame.get(SOURCE_PORT..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))?;
    (port >= 1024).then(|| port.into())
}

impl Daemon {
    /// Creates the service with two instances, the source, and the chain.
    fn prepare_service(&self) -> Result<(), MeasureError> {
        let instance = CreateBox {
            sandbox: Sandbox::Process,
            restart: Restart::OnFailure,
            ..CreateBox::new(name::<BoxName>(SERVICE)?, NAT)
        };
        let invalid = |_| MeasureError::NotANumber(RANGE.into());
        let service = CreateService {
            name: name(SERVICE)?,
            switch: name(SWITCH)?,
            instance,
            faces: api::Faces { inner: 0, outer: Some(1) },
            replicas: 2,
            auto: None,
            dead_after_ms: None,
            places: None,
            trust_pool: false,
            may_send_to: BTreeSet::new(),
            translation: Some(Translation {
                ranges: vec![RANGE.parse().map_err(invalid)?],
                slices: 2,
                mappings: Vec::new(),
            }),
            container: false,
        };
        self.client().send(&operation::CREATE_SERVICE, &[], &service)?;
        let port = PortRequest {
            attach: Attachment::Switch(name(SWITCH)?),
            mac: None,
            limits: Limits { transparent: true, ..Limits::default() },
        };
        let source = CreateBox {
            sandbox: Sandbox::Process,
            ports: vec![port],
            ..CreateBox::new(name::<BoxName>(SOURCE)?, PACKETS)
        };
        self.client().send(&operation::CREATE_BOX, &[], &source)?;
        let from: api::PortName = name("source.0")?;
        let chain = CreateChain {
            name: name("web")?,
            switch: name(SWITCH)?,
            services: vec![name(SERVICE)?],
            from: Some(from.clone()),
            to: name(SINK)?,
            both_ways: true,
        };
        self.client().send(&operation::CREATE_CHAIN, &[], &chain)?;
        let flow = AddFlow {
            condition: None,
            in_port: Some(from),
            output: FlowOutput::Chain(name("web")?),
            priority: None,
            idle_seconds: None,
            timeout_seconds: None,
        };
        self.client().send(&operation::ADD_FLOW, &[SWITCH], &flow)?;
        Ok(())
    }

    /// Kills the process of the instance with the flow. Returns the milliseconds from when the kernel tells of its end to the
    /// next packet, which the other instance passes.
    fn kill_instance(&self, arrivals: &Arrivals) -> Result<f64, MeasureError> {
        let late = |what| MeasureError::Late { what };
        let next = || arrivals.recv_timeout(REPLY_TIMEOUT).map_err(|_| late("the next packet of a flow"));
        let begin = Instant::now();
        let instance = loop {
            let status = self.client().ask(&operation::SHOW_SERVICE, &[SERVICE])?;
            let are_up = status.instances.iter().all(|found| found.up);
            let mut with_flows = status.instances.iter().filter(|found| found.flows > 0);
            if let (true, Some(found), None) = (are_up, with_flows.next(), with_flows.next()) {
                break found.name.to_string();
            }
            if begin.elapsed() > REPLY_TIMEOUT {
                return Err(late("the restart of an instance"));
            }
            std::thread::sleep(LOOK_PAUSE);
        };
        let found = self.client().ask(&operation::SHOW_BOX, &[&instance])?;
        let number = found.status.pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let process = number.ok_or(late("the process of an instance"))?;
        while arrivals.try_recv().is_ok() {}
        let (port, _) = next()?;
        let failed = |error: Errno| MeasureError::Daemon(error.into());
        let descriptor = pidfd_open(process, PidfdFlags::empty()).map_err(failed)?;
        kill_process(process, Signal::KILL).map_err(failed)?;
        poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).map_err(failed)?;
        let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        loop {
            let (other, time) = next()?;
            if other != port {
                return Ok(milliseconds(time.saturating_sub(ended)));
            }
        }
    }
}

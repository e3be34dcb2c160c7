//! The demonstration with networks: example stacks between network namespaces, with clients and servers in them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use api::{ApplyQuery, Sandbox, operation};
use clap::ValueEnum;
use serde::Serialize;

use super::boxes::SandboxOption;
use super::error::DemoError;
use super::namespace::Namespace;
use super::private_daemon::PrivateDaemon;
use super::probe;
use super::stacks::{Action, Check, ExampleStack, STACKS};
use crate::error::CommandError;
use crate::online::StackFile;
use crate::output;

/// Which stacks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Choice {
    /// All, one after the other.
    All,
    /// A transparent firewall.
    BridgeFirewall,
    /// A router.
    Router,
    /// A NAT gateway.
    Nat,
    /// A load balancer.
    LoadBalancer,
}

impl Choice {
    fn includes(self, stack: &ExampleStack) -> bool {
        self == Self::All || self.to_possible_value().is_some_and(|value| value.get_name() == stack.name)
    }
}

/// What is printed at the end as JSON.
#[derive(Default, Serialize)]
struct Summary {
    stacks: Vec<StackResult>,
}

/// The checks of a stack.
#[derive(Serialize)]
struct StackResult {
    name: &'static str,
    checks: Vec<CheckResult>,
}

/// A check and what came of it.
#[derive(Serialize)]
struct CheckResult {
    what: &'static str,
    passed: bool,
    milliseconds: f64,
    /// What happened instead, if the check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

/// Runs the chosen stacks, or prints their files.
pub(super) fn run(
    choice: Choice,
    sandbox: SandboxOption,
    is_printed: bool,
    json: bool,
) -> Result<ExitCode, CommandError> {
    let stacks = STACKS.iter().filter(|stack| choice.includes(stack));
    if is_printed {
        stacks.for_each(print);
        return Ok(ExitCode::SUCCESS);
    }
    let is_interrupted = Arc::new(AtomicBool::new(false));
    // Otherwise the program would end at once, and its folder would remain.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let _ = signal_hook::flag::register(signal, is_interrupted.clone());
    }
    let mut summary = Summary::default();
    for stack in stacks {
        let mut checks = Vec::new();
        let scene = Scene::new(stack, sandbox)?;
        if !json {
            eprintln!("{}: the stack examples/networks/{0}.toml", stack.name);
        }
        for check in stack.checks {
            if is_interrupted.load(Ordering::Relaxed) {
                return Err(DemoError::Interrupted.into());
            }
            let result = scene.check(check)?;
            if !json {
                eprintln!("{}", line(&result));
            }
            checks.push(result);
        }
        summary.stacks.push(StackResult { name: stack.name, checks });
    }
    let results = || summary.stacks.iter().flat_map(|stack| &stack.checks);
    let failed = results().filter(|result| !result.passed).count();
    if json {
        output::json(&summary);
    } else {
        output::text(&format!("{} of {} checks passed\n", results().count() - failed, results().count()));
    }
    if failed > 0 { Err(DemoError::ChecksFailed(failed).into()) } else { Ok(ExitCode::SUCCESS) }
}

fn print(stack: &ExampleStack) {
    let ExampleStack { name, stack, configuration, .. } = stack;
    output::text(&format!(
        "# examples/networks/{name}.toml\n\n{stack}\n// examples/networks/{name}.click\n\n{configuration}\n"
    ));
}

fn line(result: &CheckResult) -> String {
    let CheckResult { what, milliseconds, .. } = result;
    match &result.found {
        None => format!("  passed  {what} ({milliseconds:.1} ms)"),
        Some(found) => format!("  FAILED  {what}: {found}"),
    }
}

/// A stack on a daemon of its own, with its hosts. All of it ends when this is dropped.
struct Scene {
    hosts: Vec<Namespace>,
    _daemon: PrivateDaemon,
    _middle: Namespace,
}

impl Scene {
    fn new(example: &ExampleStack, sandbox: SandboxOption) -> Result<Scene, CommandError> {
        // The daemon's namespace has no other devices, so the names of taps are free.
        let middle = Namespace::new()?;
        let daemon = middle.inside(PrivateDaemon::start)??;
        let name = example.name;
        daemon.write(&format!("{name}.click"), example.configuration.as_bytes())?;
        let path = daemon.write(&format!("{name}.toml"), example.stack.as_bytes())?;
        let mut file = StackFile::read(&path)?;
        for request in &mut file.stack.boxes {
            request.sandbox = match sandbox {
                SandboxOption::Auto => request.sandbox,
                SandboxOption::Vm => Sandbox::Vm,
                SandboxOption::Process => Sandbox::Process,
            };
        }
        let query = ApplyQuery::default();
        daemon.client().call(&operation::APPLY_STACK, &[file.name.as_str()], &query, &file.stack)?;
        let mut hosts = Vec::new();
        for host in example.hosts {
            let (namespace, device) = (Namespace::new()?, host.device);
            middle.ip(&[format!("link set {device} netns {}", namespace.path())])?;
            let mut commands = vec![format!("link set {device} up")];
            for address in host.addresses {
                // Without duplicate address detection an IPv6 address is usable at once.
                let options = if address.contains(':') { " nodad" } else { "" };
                commands.push(format!("addr add {address} dev {device}{options}"));
            }
            commands.extend(host.gateways.iter().map(|gateway| format!("route add default via {gateway}")));
            namespace.ip(&commands)?;
            hosts.push(namespace);
        }
        Ok(Scene { hosts, _daemon: daemon, _middle: middle })
    }

    /// Runs a check.
    fn check(&self, check: &Check) -> Result<CheckResult, CommandError> {
        let begin = Instant::now();
        let found = self.act(check)?.unwrap_or_else(|error| Some(error.to_string()));
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        Ok(CheckResult { what: check.what, passed: found.is_none(), milliseconds, found })
    }

    /// Runs a check; returns what happened if that is not what has to happen.
    fn act(&self, check: &Check) -> Result<io::Result<Option<String>>, DemoError> {
        let host = |index: usize| &self.hosts[index];
        let from = host(check.from);
        match &check.action {
            Action::Ping { to, ttl, expected } => {
                let answer = probe::ping(from, address(to), *ttl, expected.is_some())?;
                let expected = expected.map(|(answer, sender)| (answer, address(sender)));
                Ok(answer.map(|answer| differs(answer, expected)))
            }
            Action::Tcp { to, server, listen, seen } => {
                let listener = probe::listen(host(*server), endpoint(listen))?;
                let served = listener.map(|listener| probe::echo(from, endpoint(to), &[listener]));
                let expected = seen.map(|seen| (0, address(seen)));
                served.map_or_else(
                    |error| Ok(Err(error)),
                    |served| Ok(served?.map(|served| differs(served, expected))),
                )
            }
            Action::Udp { to, server, seen } => {
                let served = probe::datagram(from, host(*server), endpoint(to))?;
                Ok(served.map(|served| differs(served, Some(address(seen)))))
            }
            Action::Balance { to, servers, seen } => {
                let mut listeners = Vec::new();
                for (server, listen) in *servers {
                    match probe::listen(host(*server), endpoint(listen))? {
                        Ok(listener) => listeners.push(listener),
                        Err(error) => return Ok(Err(error)),
                    }
                }
                let mut found = Vec::new();
                for _ in *servers {
                    match probe::echo(from, endpoint(to), &listeners)? {
                        Ok(served) => found.push(served),
                        Err(error) => return Ok(Err(error)),
                    }
                }
                sorting::sort(&mut found);
                let expected: Vec<_> = (0..servers.len()).map(|index| Some((index, address(seen)))).collect();
                Ok(Ok(differs(Some(found), Some(expected))))
            }
        }
    }
}

/// What was found, if it differs from what is expected.
fn differs<T: PartialEq + std::fmt::Debug>(found: Option<T>, expected: Option<T>) -> Option<String> {
    let text = |value: &Option<T>| value.as_ref().map_or("nothing".into(), |value| format!("{value:?}"));
    (found != expected).then(|| format!("expected {}, got {}", text(&expected), text(&found)))
}

/// An address of [`STACKS`].
#[expect(clippy::expect_used, reason = "the texts are constants of this program, which a test parses")]
fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// An address with a port of [`STACKS`].
#[expect(clippy::expect_used, reason = "the texts are constants of this program, which a test parses")]
fn endpoint(text: &str) -> SocketAddr {
    text.parse().expect("an address with a port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_indexes_of_all_checks_are_valid() {
        for stack in &STACKS {
            assert!(stack.hosts.iter().all(|host| stack.stack.contains(&format!("{} = {{", host.device))));
            let hosts = stack.hosts.len();
            for check in stack.checks {
                assert!(check.from < hosts, "{}", check.what);
                match &check.action {
                    Action::Ping { to, expected, .. } => {
                        address(to);
                        expected.map(|(_, sender)| address(sender));
                    }
                    Action::Tcp { to, server, listen, seen } => {
                        endpoint(to);
                        endpoint(listen);
                        seen.map(address);
                        assert!(*server < hosts, "{}", check.what);
                    }
                    Action::Udp { to, server, seen } => {
                        endpoint(to);
                        address(seen);
                        assert!(*server < hosts, "{}", check.what);
                    }
                    Action::Balance { to, servers, seen } => {
                        endpoint(to);
                        address(seen);
                        for (server, listen) in *servers {
                            endpoint(listen);
                            assert!(*server < hosts, "{}", check.what);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn each_stack_can_be_chosen() {
        for stack in &STACKS {
            let choice = Choice::from_str(stack.name, false).expect("a choice");
            let included: Vec<_> = STACKS.iter().filter(|other| choice.includes(other)).collect();
            assert!(matches!(included[..], [only] if only.name == stack.name));
        }
    }

    #[test]
    fn a_different_result_is_described() {
        assert_eq!(differs(Some(1), Some(1)), None);
        assert_eq!(differs(Some(1), None).as_deref(), Some("expected nothing, got 1"));
    }
}

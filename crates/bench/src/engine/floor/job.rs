//! Runs a loop of the floor and measures its time.

use std::io;
use std::path::Path;

use super::firewall::Firewall;
use super::frames::{Frames, for_each_batch};
use super::header::ip_header;
use super::router::Router;
use crate::engine::rules::{Route, Rule};

/// A job that the floor has a loop for.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    /// Read each frame into a buffer.
    Read,
    /// Check each frame's IPv4 header.
    #[cfg_attr(not(test), expect(dead_code, reason = "no example only checks headers"))]
    Check,
    /// Swap the Ethernet addresses of each frame.
    Mirror,
    /// Check, route, decrement the time to live, and write a new Ethernet header.
    Route(Vec<Route>),
    /// Check, and decide by rules.
    Filter(Vec<Rule>),
}

/// The result of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Floor {
    /// CPU time in seconds.
    pub(crate) seconds: f64,
    /// Frames read.
    pub(crate) frames: u64,
    /// Frames that passed the checks and were sent.
    pub(crate) passed: u64,
}

impl Job {
    /// Reads a capture and does the job for each frame. The time to build tables is not counted.
    pub(crate) fn run(&self, capture: &Path) -> io::Result<Floor> {
        let mut passed = 0;
        match self {
            Self::Read => timed(capture, |frames| passed += frames.iter_mut().count() as u64),
            Self::Check => timed(capture, |frames| {
                passed += frames.iter_mut().filter_map(|frame| ip_header(frame)).count() as u64;
            }),
            Self::Mirror => timed(capture, |frames| {
                for frame in frames.iter_mut().filter(|frame| frame.len() >= 12) {
                    let (one, other) = frame[..12].split_at_mut(6);
                    one.swap_with_slice(other);
                    passed += 1;
                }
            }),
            Self::Route(routes) => {
                let mut router = Router::new(routes);
                let run = timed(capture, |frames| router.process(frames));
                passed = router.passed();
                run
            }
            Self::Filter(rules) => {
                let mut firewall = Firewall::new(rules);
                let run = timed(capture, |frames| firewall.process(frames));
                passed = firewall.passed();
                run
            }
        }
        .map(|(seconds, frames)| Floor { seconds, frames, passed })
    }
}

/// Runs a loop; returns its CPU time in seconds and the number of frames.
fn timed(capture: &Path, job: impl FnMut(&mut Frames)) -> io::Result<(f64, u64)> {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let start = now();
    let frames = for_each_batch(capture, job)?;
    Ok((now() - start, frames))
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;
    use crate::engine::flow::Flow;
    use crate::engine::frame;
    use crate::engine::rules::{routes_text, rules};
    use crate::engine::traffic::{Capture, FrameSize};
    use crate::temporary_folder::TemporaryFolder;

    /// A capture with frames of several sizes, some of them damaged: a header sum, a version and a length.
    fn capture(folder: &Path) -> Capture {
        let capture =
            Capture::make(&folder.join("a.pcap"), 3, 2_000, false, FrameSize::InternetMix, None, 9_000);
        let capture = capture.expect("a capture");
        let mut bytes = std::fs::read(&capture.path).expect("a file");
        let ip = 24 + 16 + super::super::header::ETHERNET;
        let second = ip + 64 + 16;
        bytes[ip + 10] ^= 1;
        bytes[second] = 0x65;
        bytes[second + 594 + 16 + 2] = 0xff;
        std::fs::write(&capture.path, bytes).expect("a file");
        capture
    }

    #[test]
    fn the_loops_do_the_jobs() {
        let folder = TemporaryFolder::new().expect("a folder");
        let capture = capture(folder.path());
        let run = |job: &Job| {
            let floor = job.run(&capture.path).expect("a run");
            assert_eq!(floor.frames, 9_000, "{job:?}");
            floor.passed
        };
        assert_eq!((run(&Job::Read), run(&Job::Mirror), run(&Job::Check)), (9_000, 9_000, 8_997));
        let mut random = Random::new(2);
        for count in [1, 3, 10, 1_000] {
            let routes =
                Route::parse_all(&routes_text(count, 3, &capture.flows, &mut random)).expect("routes");
            for routes in [&routes[..], &routes[..routes.len() - 1]] {
                let expected = chosen(&capture.path, |flow, time_to_live| {
                    time_to_live > 1 && routes.iter().any(|route| route.prefix.contains(flow.destination))
                });
                assert_eq!(run(&Job::Route(routes.to_vec())), expected, "{count}");
            }
        }
        for count in [1, 10, 100] {
            let rules = rules(count, &capture.flows, &mut random);
            let expected = chosen(&capture.path, |flow, _| {
                rules.iter().find(|rule| rule.matches(flow)).is_none_or(|rule| rule.allow)
            });
            assert_eq!(run(&Job::Filter(rules)), expected, "{count}");
        }
    }

    /// The number of undamaged frames that are chosen by flow and time to live.
    fn chosen(path: &Path, choose: impl Fn(&Flow, u8) -> bool) -> u64 {
        let mut chosen = 0;
        for_each_batch(path, |frames| {
            for frame in frames.iter_mut() {
                let time_to_live = ip_header(frame).map(|ip| ip[8]);
                let flow = frame::flow_of(frame);
                chosen += u64::from(flow.zip(time_to_live).is_some_and(|(flow, time)| choose(&flow, time)));
            }
        })
        .expect("a run");
        chosen
    }
}

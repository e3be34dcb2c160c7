//! The figures of `clickbox bench` as text tables.

use std::fmt::Write;

use crate::planes::Rebuild;
use crate::{
    Boot, Chain, Create, Density, InterfaceDriver, InterfaceRate, Io, Latency, LatencyRow, Memory, OwnCores,
    PeerDriver, PeerRate, PeerRole, PortRate, RuleGap, RuleGaps, RuleWrites, State, StateRow, SteeringRate,
    SteeringResults, Times, Transaction,
};
use serde::Serialize;

/// Several measurements of one kind.
#[derive(Serialize)]
pub struct Rows<T> {
    /// One row for each measurement.
    pub rows: Vec<T>,
}

/// A text table of figures.
pub trait Table {
    /// The heading.
    fn head() -> String;
    /// One or more lines.
    fn lines(&self) -> String;

    /// The heading and the lines.
    fn table(&self) -> String {
        format!("{}\n{}", Self::head(), self.lines())
    }
}

impl<T: Table> Table for Rows<T> {
    fn head() -> String {
        T::head()
    }

    fn lines(&self) -> String {
        self.rows.iter().map(T::lines).collect()
    }
}

impl Table for Boot {
    fn head() -> String {
        format!("{:<28} {:>8} {:>8} {:>8} {:>8} {:>8}", "ms", "p50", "p99", "max", "first", "last")
    }

    fn lines(&self) -> String {
        let line = |name: &str, times: Times| {
            let Times { p50, p99, max, first, last } = times;
            format!("{name:<28} {p50:>8.3} {p99:>8.3} {max:>8.3} {first:>8.3} {last:>8.3}\n")
        };
        let mut lines = String::new();
        if let Some(daemon) = &self.daemon_ms {
            lines += &line("daemon: to first packet", daemon.first_packet_ms);
            lines += &line("daemon: to reply", daemon.reply_ms);
        }
        if let Some(service) = &self.service_ms {
            lines += &line("service: to first packet", service.first_packet_ms);
            lines += &line("service: to reply", service.reply_ms);
        }
        lines += &self.death_ms.map_or(String::new(), |times| line("service: death to packet", times));
        lines += &line("library: to first packet", self.boot_ms);
        lines += &line("library: install", self.install_ms);
        lines += &self.copy_ms.map_or(String::new(), |times| line("library: copy to first packet", times));
        let steps = self.steps_ms;
        for (name, time) in [
            ("create", steps.create),
            ("start", steps.start),
            ("install, with first steps", steps.install),
            ("first packet", steps.first_packet),
            ("remove", self.remove_ms),
        ] {
            // Writing to a string can't fail.
            let _ = writeln!(lines, "{name:<28} {time:>8.3}");
        }
        lines + &format!("{:<28} {:>8.1} KB\n", "private memory of a box", self.private_kb)
    }
}

impl Table for Create {
    fn head() -> String {
        format!("{:<32} {:>8} {:>8} {:>8} {:>8} {:>8}", "ms", "p50", "p99", "max", "first", "last")
    }

    fn lines(&self) -> String {
        let line = |(name, times): (&str, Times)| {
            let Times { p50, p99, max, first, last } = times;
            format!("{name:<32} {p50:>8.3} {p99:>8.3} {max:>8.3} {first:>8.3} {last:>8.3}\n")
        };
        let rows = [
            ("command: start to first packet", self.command_to_packet_ms),
            ("command: start to end", self.command_ms),
            ("connection: to first packet", self.request_to_packet_ms),
            ("connection: to reply", self.request_ms),
            ("one fsync of this disk", self.fsync_ms),
        ];
        let rows: String = rows.into_iter().map(line).collect();
        let calls = [("connection: read", self.read_us), ("connection: write", self.write_us)];
        let calls = calls.map(|(name, Transaction { p50, p99 })| {
            format!("{name:<32} {:>8.3} {:>8.3}\n", p50 / 1e3, p99 / 1e3)
        });
        rows + &calls.concat()
    }
}

impl Table for Rebuild {
    fn head() -> String {
        format!("{:<8} {:>8} {:>8} {:>8} {:>8} {:>8}", "boxes", "goal ms", "p50", "max", "away p50", "max")
    }

    fn lines(&self) -> String {
        let Self { boxes, goal_ms, rebuild_ms, away_ms, .. } = self;
        format!(
            "{boxes:<8} {goal_ms:>8.0} {:>8.1} {:>8.1} {:>8.1} {:>8.1}\n",
            rebuild_ms.p50, rebuild_ms.max, away_ms.p50, away_ms.max
        )
    }
}

impl Table for Io {
    fn head() -> String {
        format!("{:<8} {:>6} {:>6} {:>9} {:>9}", "mode", "bytes", "slots", "Mp/s", "Gb/s")
    }

    fn lines(&self) -> String {
        let mode = format!("{:?}", self.mode).to_lowercase();
        format!("{mode:<8} {:>6} {:>6} {:>9.2} {:>9.2}\n", self.size, self.ring, self.mpps, self.gbps)
    }
}

impl Table for Latency {
    fn head() -> String {
        format!("{:<8} {:>6} {:<6} {:>9} {:>9}", "box", "others", "load", "p50 us", "p99 us")
    }

    fn lines(&self) -> String {
        let line = |row: &LatencyRow| {
            let [waiting, load] =
                [format!("{:?}", row.waiting), format!("{:?}", row.load)].map(|name| name.to_lowercase());
            format!("{waiting:<8} {:>6} {load:<6} {:>9.1} {:>9.1}\n", row.others, row.p50_us, row.p99_us)
        };
        self.rows.iter().map(line).collect()
    }
}

impl Table for Chain {
    fn head() -> String {
        format!("{:<6} {:<8} {:>6} {:>6} {:>9} {:>9}", "boxes", "joined", "bytes", "slots", "Mp/s", "Gb/s")
    }

    fn lines(&self) -> String {
        let joined = format!("{:?}", self.interconnect).to_lowercase();
        format!(
            "{:<6} {joined:<8} {:>6} {:>6} {:>9.2} {:>9.2}\n",
            self.length, self.size, self.ring, self.mpps, self.gbps
        )
    }
}

impl Table for InterfaceRate {
    fn head() -> String {
        format!(
            "{:<11} {:>8} {:>8} {:>12} {:>10} {:>8} {:>6}",
            "driver", "Mp/s", "best", "ns a frame", "OVS Mp/s", "best", "ratio"
        )
    }

    fn lines(&self) -> String {
        let driver = match self.driver {
            InterfaceDriver::AfXdp => "af_xdp",
            InterfaceDriver::AfPacket => "af_packet",
        };
        let Self { mpps, best_mpps, nanoseconds, ovs_mpps, best_ovs_mpps, .. } = self;
        let number = |number: &Option<f64>| number.map_or("-".to_string(), |number| format!("{number:.3}"));
        let (ovs, best_ovs) = (number(ovs_mpps), number(best_ovs_mpps));
        let ratio = number(&ovs_mpps.map(|ovs| mpps / ovs));
        format!(
            "{driver:<11} {mpps:>8.3} {best_mpps:>8.3} {nanoseconds:>12.0} {ovs:>10} {best_ovs:>8} {ratio:>6}\n"
        )
    }
}

impl Table for PortRate {
    fn head() -> String {
        format!(
            "{:<11} {:<7} {:<9} {:>8} {:>12} {:>6}",
            "driver", "role", "frames", "Mp/s", "testpmd Mp/s", "ratio"
        )
    }

    fn lines(&self) -> String {
        let driver = match self.driver {
            PeerDriver::Memif => "memif",
            PeerDriver::VhostUser => "vhost_user",
        };
        let role = match self.role {
            PeerRole::Server => "server",
            PeerRole::Client => "client",
        };
        let frames = if self.sends { "sent" } else { "received" };
        let ratio = self.mpps / self.testpmd_mpps;
        format!(
            "{driver:<11} {role:<7} {frames:<9} {:>8.2} {:>12.2} {ratio:>6.2}\n",
            self.mpps, self.testpmd_mpps
        )
    }
}

impl Table for SteeringResults {
    fn head() -> String {
        format!(
            "{:<10} {:>8} {:>6} {:<8} {:>7} {:>5} {:>8} {:>8} {:>9} {:>9} {:>8} {:>8}",
            "functions",
            "flows",
            "bytes",
            "by",
            "threads",
            "idle",
            "Mp/s",
            "Gb/s",
            "ns",
            "ns a hop",
            "p50 us",
            "p99 us"
        )
    }

    fn lines(&self) -> String {
        let line = |row: &SteeringRate| {
            let by = format!("{:?}", row.by).to_lowercase();
            let hop = row.further_hop_ns.map_or("-".into(), |hop| format!("{hop:.1}"));
            format!(
                "{:<10} {:>8} {:>6} {by:<8} {:>7} {:>5} {:>8.2} {:>8.2} {:>9.1} {hop:>9} {:>8.2} {:>8.2}\n",
                row.chain,
                row.flows,
                row.size,
                row.threads,
                row.idle_ports,
                row.mpps,
                row.gbps,
                row.switch_ns,
                row.latency_us.p50,
                row.latency_us.p99
            )
        };
        let peer = |row: &PeerRate| {
            let PeerRate { peer, chain, size, mpps, gbps } = row;
            format!("{chain:<10} {:>8} {size:>6} {peer:<16} {mpps:>8.2} {gbps:>8.2}\n", "-")
        };
        let own_cores = match &self.own_cores {
            OwnCores::Measured { functions, mpps_of_one, mpps, loss_percent } => format!(
                "a processor for each of {functions} functions: {mpps:.2} Mp/s, {loss_percent:.1} % less than {mpps_of_one:.2} Mp/s \
                 with one function\n"
            ),
            OwnCores::NotMeasured { functions, not_measured } => {
                format!("a processor for each of {functions} functions: not measured: {not_measured}\n")
            }
        };
        self.results.iter().map(line).chain(self.peers.iter().map(peer)).chain([own_cores]).collect()
    }
}

impl Table for Density {
    fn head() -> String {
        format!("{:<6} {:>6} {:>6} {:>9} {:>9} {:>9}", "boxes", "bytes", "slots", "Mp/s", "Gb/s", "spread")
    }

    fn lines(&self) -> String {
        format!(
            "{:<6} {:>6} {:>6} {:>9.2} {:>9.2} {:>7.2} %\n",
            self.boxes,
            self.size,
            self.ring,
            self.mpps,
            self.gbps,
            self.spread * 100.0
        )
    }
}

impl Table for Memory {
    fn head() -> String {
        format!("{:<18} {:>8}", "slots of a port", "KB")
    }

    fn lines(&self) -> String {
        let rings: String =
            self.rings.iter().map(|row| format!("{:<18} {:>8}\n", row.ring, row.kb)).collect();
        let mut lines = rings + &format!("{:<18} {:>8}\n", "mailbox", self.control_kb);
        for table in &self.tables {
            let name = format!("{} {}", table.count, table.entries);
            // Writing to a string can't fail.
            let _ = writeln!(
                lines,
                "{name:<18} {:>8.1}  of which text {:.1}; private memory of the box {:.0}",
                table.adds_kb, table.text_kb, table.private_kb
            );
        }
        lines
    }
}

impl Table for RuleWrites {
    fn head() -> String {
        let columns = ["longest gap", "least", "without", "least", "took us"];
        columns.iter().fold(format!("{:<8} {:<8} {:<14}", "rules", "in a", "change"), |head, name| {
            head + &format!(" {name:>12}")
        })
    }

    fn lines(&self) -> String {
        let line = |place: &str, change: &str, gap: &RuleGap| {
            let figures = [gap.with_us, gap.least_with_us, gap.without_us, gap.least_without_us, gap.took_us];
            let start = format!("{:<8} {place:<8} {change:<14}", self.rules);
            figures.iter().fold(start, |line, figure| line + &format!(" {figure:>12.1}")) + "\n"
        };
        let lines = |(place, gaps): (&str, &RuleGaps)| {
            line(place, "rules", &gaps.write) + &line(place, "configuration", &gaps.swap)
        };
        [("box", &self.in_box), ("process", &self.in_process)].into_iter().map(lines).collect()
    }
}

impl Table for State {
    fn head() -> String {
        format!("{:<8} {:>10} {:>10} {:>10} {:>10}", "bytes", "write p50", "p99", "read p50", "p99 us")
    }

    fn lines(&self) -> String {
        let line = |row: &StateRow| {
            let (write, read) = (row.write_us, row.read_us);
            format!(
                "{:<8} {:>10.1} {:>10.1} {:>10.1} {:>10.1}\n",
                row.size, write.p50, write.p99, read.p50, read.p99
            )
        };
        self.rows.iter().map(line).collect()
    }
}

//! Messages between stages: from whom a pass receives, and to whom it sends.

use super::{On, Writer};
use crate::units::narrow;
use crate::workload::program::{Account, Phase};
use crate::workload::schedule::Unit;
use crate::workload::trace;

impl Writer<'_> {
    /// The stage and chunk from which a unit receives; none at the model's end, and where it is the same stage.
    fn before(&self, unit: Unit) -> Option<(u64, u64)> {
        let (route, shape) = (self.source.program.schedule.part().route(), self.source.program.shape());
        let before = match unit.pass {
            Phase::Forward => route.previous(self.source.stage, unit.chunk, &shape),
            Phase::Backward => route.next(self.source.stage, unit.chunk, &shape),
            Phase::Weights | Phase::Step => None,
        };
        before.filter(|(stage, _)| *stage != self.source.stage)
    }

    /// The stage to which a unit sends; none at the model's end, and where it is the same stage.
    fn behind(&self, unit: Unit) -> Option<u64> {
        let (route, shape) = (self.source.program.schedule.part().route(), self.source.program.shape());
        let behind = match unit.pass {
            Phase::Forward => route.next(self.source.stage, unit.chunk, &shape),
            Phase::Backward => route.previous(self.source.stage, unit.chunk, &shape),
            Phase::Weights | Phase::Step => None,
        };
        behind.map(|(stage, _)| stage).filter(|stage| *stage != self.source.stage)
    }

    /// The tag of the message of a unit of a chunk.
    const fn tag(&self, unit: Unit, chunk: u64) -> u64 {
        2 * (unit.microbatch * self.source.program.chunks + chunk) + matches!(unit.pass, Phase::Backward) as u64
    }

    /// What a unit waits for: the first of all is where a step of the stage begins.
    pub(super) fn receive(&mut self, unit: Unit) {
        if let Some((stage, chunk)) = self.before(unit) {
            let begins = unit.pass == Phase::Forward && unit.microbatch == 0 && unit.chunk == 0;
            if begins && self.source.program.schedule.part().is_open() {
                self.first = Some(narrow(self.accounts.len() as u64));
            }
            let tag = self.tag(unit, chunk);
            let receive = trace::Work::Receive { from: narrow(stage), bytes: self.source.message.get(), tag };
            self.message(receive, On::Nobody);
        }
    }

    pub(super) fn send(&mut self, unit: Unit) {
        if let Some(stage) = self.behind(unit) {
            let tag = self.tag(unit, unit.chunk);
            let send = trace::Work::Send { to: narrow(stage), bytes: self.source.message.get(), tag };
            if !self.source.program.overlap_sends {
                self.lasts(
                    self.source.prices.system().software.collective_latency.round(),
                    On::Account(Account::Pipeline),
                );
            }
            if self.source.program.overlap_sends {
                self.push(send, On::Nobody, self.base());
            } else {
                self.message(send, On::Account(Account::Pipeline));
            }
        }
    }

    fn message(&mut self, work: trace::Work, on: On) {
        let id = self.push(work, on, self.base());
        self.join(id);
    }

    /// The stage as far from the other end: it holds the tied embedding too, or the same parts of the model.
    pub(super) fn other_end(&self) -> u32 {
        narrow(self.source.program.stages - 1 - self.source.stage)
    }
}

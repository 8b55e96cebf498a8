//! Messages between stages: from whom a pass receives, and to whom it sends.

use super::{On, Writer};
use crate::units::narrow;
use crate::workload::program::{Account, Phase, Program};
use crate::workload::schedule::Unit;
use crate::workload::trace;

impl Writer<'_> {
    /// The stage and chunk from which a unit receives; none at the model's end.
    fn before(&self, unit: Unit) -> Option<(u64, u64)> {
        let Program { stages, chunks, .. } = *self.program;
        match unit.pass {
            Phase::Forward if self.stage > 0 => Some((self.stage - 1, unit.chunk)),
            Phase::Forward => unit.chunk.checked_sub(1).map(|chunk| (stages - 1, chunk)),
            _ if self.stage + 1 < stages => Some((self.stage + 1, unit.chunk)),
            _ => (unit.chunk + 1 < chunks).then_some((0, unit.chunk + 1)),
        }
    }

    /// The stage to which a unit sends; none at the model's end.
    fn behind(&self, unit: Unit) -> Option<u64> {
        let Program { stages, chunks, .. } = *self.program;
        match unit.pass {
            Phase::Forward if self.stage + 1 < stages => Some(self.stage + 1),
            Phase::Forward => (unit.chunk + 1 < chunks).then_some(0),
            _ if self.stage > 0 => Some(self.stage - 1),
            _ => (unit.chunk > 0).then_some(stages - 1),
        }
    }

    /// The tag of the message of a unit of a chunk.
    const fn tag(&self, unit: Unit, chunk: u64) -> u64 {
        2 * (unit.microbatch * self.program.chunks + chunk) + matches!(unit.pass, Phase::Backward) as u64
    }

    pub(super) fn receive(&mut self, unit: Unit) {
        if let Some((stage, chunk)) = self.before(unit).filter(|_| self.program.stages > 1) {
            let tag = self.tag(unit, chunk);
            let receive = trace::Work::Receive { from: narrow(stage), bytes: self.message.get(), tag };
            self.message(receive, On::Nobody);
        }
    }

    pub(super) fn send(&mut self, unit: Unit) {
        if let Some(stage) = self.behind(unit).filter(|_| self.program.stages > 1) {
            let tag = self.tag(unit, unit.chunk);
            let send = trace::Work::Send { to: narrow(stage), bytes: self.message.get(), tag };
            if !self.program.overlap_sends {
                self.lasts(self.prices.system().software.collective_latency.round(), Account::Pipeline);
            }
            if self.program.overlap_sends {
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

    /// The other stage that holds the tied embedding: the last, or the first.
    pub(super) fn other_end(&self) -> u32 {
        narrow(if self.stage == 0 { self.program.stages - 1 } else { 0 })
    }
}

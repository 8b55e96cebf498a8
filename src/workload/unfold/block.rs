//! A block's operations, once: streams side by side where they may be.

use super::strand::{After, Strand, only};
use super::{On, Prices, TIED, Writer};
use crate::system::collective::Collective;
use crate::units::{Bytes, Time, narrow, real};
use crate::workload::placement::Group;
use crate::workload::program::{Account, Beside, Block, Operation, Phase, Program, Work};
use crate::workload::trace;

impl Writer<'_> {
    /// A block, once: its streams side by side if they may be.
    pub(super) fn repeat(&mut self, block: &Block) {
        let base = self.base();
        let program = self.source.program;
        let mut main = Strand { begin: base, ..Strand::default() };
        // What runs beside the whole block.
        let mut whole = Strand { begin: base, ..Strand::default() };
        // Transfers beside it, and data-parallel traffic that is part of it.
        let mut beside = Strand::default();
        let (mut data, mut data_time, mut data_sent) = (None, Time::ZERO, 0.0);
        for operation in operations_of(program, block, self.source.prices) {
            let time = self.source.prices.time(operation);
            if program.overlap && operation.is_data_stream() {
                data = Some(self.operation(operation, (1, 1), data.map_or(base, only)));
                data_time += time;
                data_sent += self.source.prices.sent(operation);
            } else if let (Work::Transfer { read, written, .. }, Beside::Block) = (operation.work, operation.beside) {
                beside.last = Some(self.operation(operation, (1, 1), beside.last.map_or(base, only)));
                beside.communicating += time;
                beside.sent += (read + written).as_real();
            } else if operation.beside == Beside::Block {
                let after = whole.last.map_or(base, only);
                whole.last = Some(self.operation(operation, (1, 1), after));
                whole.communicating += time;
                whole.sent += self.source.prices.sent(operation);
                whole.account = Some(operation.account);
            } else if operation.beside == Beside::Next {
                if main.computing > Time::ZERO {
                    self.meet(&mut main);
                }
                let after = main.beside.map_or(main.begin, only);
                main.beside = Some(self.operation(operation, (1, 1), after));
                main.communicating += time;
                main.sent += self.source.prices.sent(operation);
                main.account = Some(operation.account);
            } else {
                let computes = matches!(operation.work, Work::Compute(_));
                if !computes {
                    self.meet(&mut main);
                }
                let after = main.last.map_or(main.begin, only);
                main.last = Some(self.operation(operation, (1, 1), after));
                if let Work::Send { size } = operation.work {
                    // What a stage sends once a step the other sends it too.
                    let receive = trace::Work::Receive { from: self.other_end(), bytes: size.get(), tag: TIED };
                    main.beside = Some(self.push(receive, On::Nobody, after));
                }
                if computes {
                    main.computing += time;
                    whole.computing += time;
                } else if operation.is_data_stream() {
                    beside.busy += time;
                    self.meet(&mut main);
                } else {
                    main.busy += time;
                    self.meet(&mut main);
                }
            }
        }
        self.meet(&mut main);
        if whole.last.is_some() {
            let Strand { last, communicating, computing, account, sent, .. } = whole;
            main.begin[2] = last;
            main.busy += communicating.saturating_sub(computing);
            let paid = self.source.prices.system().paid(communicating.min(computing), communicating, sent);
            if let Some(account) = account.filter(|_| paid > Time::ZERO) {
                main.begin = only(self.push(trace::Work::Lasts { time: paid }, On::Slowed(account), main.begin));
                main.busy += paid;
            }
        }
        self.transferred(beside, &mut main);
        let system = self.source.prices.system();
        let wait = system.software.host_wait(main.busy.as_delay(), block.dispatches).round();
        let did = main.begin != base;
        if did {
            [self.last, self.beside, self.whole, self.data] = main.begin;
        }
        if wait > Time::ZERO {
            let id = self.push(trace::Work::Lasts { time: wait }, On::Account(Account::Host), self.base());
            self.join(id);
        }
        // A data stream that did nothing here is met by the next operation of the main one.
        self.data = data.or(self.data);
        if block.phase != Phase::Step {
            self.lasts(system.paid(data_time.min(main.busy + wait), data_time, data_sent), On::Slowed(Account::Data));
        }
    }

    /// Transfers beside the block are over, and so is the block: what comes next waits for both.
    fn transferred(&mut self, beside: Strand, main: &mut Strand) {
        let Strand { last, communicating, sent, busy, .. } = beside;
        if last.is_none() {
            return;
        }
        let busy = main.busy + busy;
        let time = self.source.prices.system().slowed(communicating.min(busy), communicating, sent);
        // Computations have been met, so the place of the data stream is free.
        main.begin[3] = last;
        let slowed = trace::Work::Lasts { time };
        main.begin = only(self.push(slowed, On::Slowed(Account::Offload), main.begin));
        main.busy += communicating.saturating_sub(busy) + time;
    }

    /// Communication that ran beside computations is over, and so are they: what comes next waits for both.
    fn meet(&mut self, main: &mut Strand) {
        let Strand { last, beside, communicating, computing, account, sent, .. } = *main;
        main.busy += communicating.max(computing);
        if last.is_some() || beside.is_some() {
            main.begin = [last, beside, None, None];
        }
        let paid = self.source.prices.system().paid(communicating.min(computing), communicating, sent);
        if let Some(account) = account.filter(|_| paid > Time::ZERO) {
            let id = self.push(trace::Work::Lasts { time: paid }, On::Slowed(account), main.begin);
            main.begin = only(id);
            main.busy += paid;
        }
        (main.last, main.beside, main.account) = (None, None, None);
        (main.communicating, main.computing, main.sent) = (Time::ZERO, Time::ZERO, 0.0);
    }

    /// An operation, and what it costs before it begins.
    pub(super) fn operation(&mut self, operation: &Operation, share: (u64, u64), after: After) -> u64 {
        let on = On::Account(operation.account);
        let latency = self.source.prices.system().software.collective_latency.round();
        let after = match operation.work {
            Work::Collective { group, .. }
                if latency > Time::ZERO && group != Group::Everyone && self.source.prices.members(group) > 1 =>
            {
                only(self.push(trace::Work::Lasts { time: latency }, on, after))
            }
            _ => after,
        };
        let work = self.work(operation, share);
        self.push(work, on, after)
    }

    /// A share of an operation as a trace has it.
    fn work(&self, operation: &Operation, share: (u64, u64)) -> trace::Work {
        let part = |bytes: Bytes| real(bytes.get()) * real(share.0) / real(share.1);
        match operation.work {
            Work::Collective { collective, group, size } => {
                let ranks =
                    if collective == Collective::AllGather { real(self.source.prices.members(group)) } else { 1.0 };
                let bytes = Bytes::from_real(part(size) / ranks).get();
                let group = Some(narrow(self.source.stage * Group::COUNT) + group as u32);
                trace::Work::Collective { collective, bytes, group, dimensions: u32::MAX }
            }
            Work::Send { size } => trace::Work::Send { to: self.other_end(), bytes: size.get(), tag: TIED },
            Work::Transfer { tier, read, written } if Some(tier) == self.source.program.tier() => {
                trace::Work::Load { bytes: read.max(written).get() }
            }
            // A trace has one memory beyond the NPU's own.
            Work::Transfer { .. } | Work::Compute(_) => trace::Work::Lasts { time: self.source.prices.time(operation) },
        }
    }

    /// Time that goes by, behind both streams.
    pub(super) fn lasts(&mut self, time: Time, on: On) {
        if time > Time::ZERO {
            let id = self.push(trace::Work::Lasts { time }, on, self.base());
            self.join(id);
        }
    }
}

/// The operations of a block that do anything: a collective of one rank does not, and would wait for the slot of others under
/// the reference's rules.
pub(super) fn operations_of<'a>(
    program: &'a Program,
    block: &Block,
    prices: &'a dyn Prices,
) -> impl Iterator<Item = &'a Operation> {
    let is_done = move |operation: &&Operation| match operation.work {
        Work::Collective { group, .. } => prices.members(group) > 1,
        _ => true,
    };
    program.operations_of(block).iter().filter(is_done)
}

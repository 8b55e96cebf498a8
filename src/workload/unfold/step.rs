//! A stage's step: its passes in the order of the schedule, with what is done once a step before, beneath and behind them.

use std::collections::btree_map::Entry;

use super::block::operations_of;
use super::{Known, On, Passes, Stage, Unfolded, Writer};
use crate::units::{Time, index, narrow, real};
use crate::workload::program::{Account, Block, Operation, Phase, Program, RankClass};
use crate::workload::schedule::Unit;
use crate::workload::trace::{self, Broken};

impl Writer<'_> {
    /// All units, and what is done once a step before, beneath and behind them.
    pub(super) fn step(&mut self, class: &RankClass, known: &mut Known, unfolded: &mut Unfolded) -> Result<(), Broken> {
        let program = self.source.program;
        let blocks = program.blocks_of(class);
        let Program { microbatches, chunks, overlap, .. } = *program;
        let layers = blocks.iter().filter(|block| block.phase == Phase::Forward).map(|block| block.repeat).max();
        let layers = layers.unwrap_or(1);
        let of_step = |beneath: Option<Phase>| {
            blocks.iter().filter(move |block| block.phase == Phase::Step && block.hidden_beneath == beneath)
        };
        // Weights of the first layer, before anything, then those of the others, chunk by chunk, beneath the first microbatch.
        let alone = if overlap { 1 } else { layers };
        let rest = |chunk: u64| (layers * (chunk + 1) / chunks).saturating_sub((layers * chunk / chunks).max(alone));
        for block in of_step(Some(Phase::Forward)) {
            self.states(block, (alone, layers), true);
        }
        let mut weights = Vec::new();
        for chunk in 0..if overlap { chunks } else { 0 } {
            for block in of_step(Some(Phase::Forward)) {
                self.states(block, (rest(chunk), layers), false);
            }
            weights.push(self.data);
        }
        let has_weights = self.data.take().is_some();
        let made = program.gradients();
        let is_first = |unit: Unit| unit.pass == Phase::Forward && unit.microbatch == 0 && has_weights;
        let is_last = |unit: Unit| unit.pass == made && unit.microbatch + 1 == microbatches;
        let mut sent = None;
        let of_gradients = || of_step(Some(made));
        let is_there = |unit: &Unit| blocks.iter().any(|block| block.phase == unit.pass);
        let mut units = program.schedule.part().units(self.source.stage, program.shape()).filter(is_there);
        let mut joined: Vec<Unit> = Vec::new();
        while let Some(unit) = units.next() {
            joined.clear();
            joined.push(unit);
            while joined.last().is_some_and(|unit| unit.joined) {
                joined.extend(units.next());
            }
            for &unit in &joined {
                if is_first(unit) && unit.chunk > 0 {
                    self.data = weights[index(unit.chunk)].take();
                }
                self.begin(unit);
                self.receive(unit);
            }
            for &unit in &joined {
                self.begin(unit);
                let mut gradients = is_last(unit) && unit.chunk == 0 && overlap;
                let is_beneath = weights.iter().any(Option::is_some) || sent.is_some();
                let is_alone = !(is_beneath || gradients && of_gradients().next().is_some());
                if is_alone && self.source.passes == Passes::Summed {
                    let key = (class.start, unit.pass, unit.chunk);
                    let sum = match known.entry(key) {
                        Entry::Occupied(sum) => *sum.get(),
                        Entry::Vacant(place) => *place.insert(self.sum(class, unit, unfolded)?),
                    };
                    self.summed(sum);
                    continue;
                }
                let of_pass = |block: &&Block| block.phase == unit.pass && !program.is_message(block);
                for block in blocks.iter().filter(of_pass) {
                    for _ in 0..block.of_chunk(blocks, unit.chunk, chunks) {
                        self.repeat(block);
                        // Gradients of all layers but the one that is ready last go out beneath the pass.
                        if block.repeat == layers && std::mem::take(&mut gradients) {
                            sent = self.gradients(true, rest(0), layers, of_gradients(), sent);
                        }
                    }
                }
                // A chunk without layers.
                sent = self.gradients(gradients, rest(0), layers, of_gradients(), sent);
            }
            for &unit in &joined {
                self.begin(unit);
                if is_first(unit) && unit.chunk == 0 {
                    self.data = weights[0].take();
                }
                self.send(unit);
                let are_ready = is_last(unit) && unit.chunk > 0;
                sent = self.gradients(are_ready, rest(unit.chunk), layers, of_gradients(), sent);
            }
        }
        self.doing.clear();
        self.data = sent.or(self.data);
        for block in of_gradients() {
            self.states(block, (alone, layers), true);
        }
        self.paid(blocks, layers, [Phase::Forward, made]);
        for block in of_step(None) {
            self.repeat(block);
        }
        Ok(())
    }

    /// Adds the sum that a pass is: its place, and how many operations it stands for.
    fn sum(&self, class: &RankClass, unit: Unit, unfolded: &mut Unfolded) -> Result<(u32, u64), Broken> {
        let program = self.source.program;
        let blocks = program.blocks_of(class);
        let is_part = |(_, block): &(usize, &Block)| block.phase == unit.pass && !program.is_message(block);
        let mut parts = Vec::new();
        let mut operations = 0;
        for (place, block) in (class.start..).zip(blocks).filter(is_part) {
            let times = block.of_chunk(blocks, unit.chunk, program.chunks);
            let once = match unfolded.blocks.entry(place) {
                Entry::Occupied(once) => once.into_mut(),
                Entry::Vacant(place) => place.insert(self.once(block)?),
            };
            operations += times * once.accounts.len() as u64;
            parts.push((place, times));
        }
        unfolded.sums.push(parts);
        Ok((narrow(unfolded.sums.len() as u64 - 1), operations))
    }

    /// A repeat of a block, by itself.
    fn once(&self, block: &Block) -> Result<Stage, Broken> {
        let mut writer = Writer::new(self.source);
        writer.repeat(block);
        writer.finish()
    }

    /// A pass that is a sum, which has the numbers of the operations that it stands for.
    fn summed(&mut self, (place, operations): (u32, u64)) {
        if operations > 0 {
            let id = self.push(trace::Work::Sum { place }, On::Sum(place), self.base());
            self.next = id + operations;
            self.join(id);
        }
    }

    /// What data-parallel traffic costs the passes that hide it.
    fn paid(&mut self, blocks: &[Block], layers: u64, passes: [Phase; 2]) {
        let program = self.source.program;
        for pass in passes.into_iter().filter(|_| program.overlap) {
            let time = |block: &Block| self.alone(program.operations_of(block)) * block.repeat;
            let data: Time = blocks.iter().filter(|block| block.hidden_beneath == Some(pass)).map(time).sum();
            let window: Time = blocks.iter().filter(|block| block.phase == pass).map(time).sum();
            let sent = blocks.iter().filter(|block| block.hidden_beneath == Some(pass)).map(|block| {
                real(block.repeat)
                    * program.operations_of(block).iter().map(|it| self.source.prices.sent(it)).sum::<f64>()
            });
            let sent = sent.sum();
            let [most, window] = [data, window].map(|time| time.saturating_sub(time / layers));
            self.lasts(self.source.prices.system().paid(most.min(window), data, sent), On::Slowed(Account::Data));
        }
    }

    /// Operations one after the other.
    fn alone(&self, operations: &[Operation]) -> Time {
        operations.iter().map(|operation| self.source.prices.time(operation)).sum()
    }

    /// Gradients of some layers go out, behind those that went before and beside what follows; the last of them.
    fn gradients<'b>(
        &mut self,
        are_ready: bool,
        layers: u64,
        all: u64,
        blocks: impl Iterator<Item = &'b Block>,
        before: Option<u64>,
    ) -> Option<u64> {
        if !are_ready || !self.source.program.overlap {
            return before;
        }
        let data = std::mem::replace(&mut self.data, before);
        for block in blocks {
            self.states(block, (layers, all), false);
        }
        std::mem::replace(&mut self.data, data)
    }

    /// A share of a block of data-parallel traffic: before what follows, or beside it.
    fn states(&mut self, block: &Block, share: (u64, u64), waits: bool) {
        if share.0 == 0 {
            return;
        }
        let program = self.source.program;
        for operation in operations_of(program, block, self.source.prices) {
            let id = self.operation(operation, share, self.base());
            if waits {
                self.join(id);
            } else {
                self.data = Some(id);
            }
        }
    }
}

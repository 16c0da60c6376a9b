//! Predicts the commands of an app by one shader model, corrected by what they cost before.

use super::batch::{Batch, Pending};
use super::{Settings, ShaderModel, Submission, Ticket};
use crate::adapt::{Adaption, Disturbance, Fingerprint, GroupKey};
use crate::cost::{
    Costs, FragmentState, GroupType, Parts, ProfiledShaders, ProgramId, ShaderContext, ShaderCost as _,
    ShaderRates, Target,
};
use crate::estimate::Prediction;
use crate::fragments::Fragments;
use crate::profile::Profile;
use crate::shaders::MarsShaders;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    model: ShaderModel,
    overpredict: f64,
    /// The largest rates of all programs so far, for programs about which nothing is known.
    dearest: ShaderRates,
    pub(super) adaption: Adaption,
    /// The current group.
    pub(super) pending: Pending,
    /// Fragments since the last swap.
    frame_fragments: f64,
}

impl Judge {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            model: settings.shaders,
            overpredict: settings.overpredict,
            dearest: ShaderRates::default(),
            adaption: Adaption::new(settings.adaption),
            pending: Pending::default(),
            frame_fragments: 0.0,
        }
    }

    /// What the program's instances cost, by the best source there is.
    pub(super) fn rates(
        &mut self,
        profiled: &ProfiledShaders,
        mars: Option<&MarsShaders>,
        shader: &ShaderContext<'_>,
    ) -> ShaderRates {
        let mars = || mars.and_then(|mars| mars.rates(shader));
        let profiled = || profiled.rates(shader);
        let known = match self.model {
            ShaderModel::Profiled => profiled().or_else(mars),
            ShaderModel::Mars => mars().or_else(profiled),
        };
        let Some(rates) = known else { return self.dearest };
        self.dearest.vertex_ns = self.dearest.vertex_ns.max(rates.vertex_ns);
        self.dearest.fragment_ns = self.dearest.fragment_ns.max(rates.fragment_ns);
        rates
    }

    /// The draws of a scene are complete.
    pub(super) fn add(&mut self, profile: &Profile, batch: &Batch, rates: ShaderRates, fragments: f64) {
        self.pending.add(&Costs(profile), batch, rates, fragments);
    }

    /// What the current group would cost if it were submitted now, by a swap of a target or without.
    pub(super) fn pending(
        &self,
        fragments: &Fragments,
        profile: &Profile,
        swap: Option<Target>,
        switch: Disturbance,
    ) -> Prediction {
        let costs = Costs(profile);
        let mut group = self.pending.whole(fragments);
        group.cost.flush = costs.flush();
        if let Some(target) = swap {
            group.cost.swap = costs.swap(target, self.frame_fragments + group.fragments);
        }
        let (key, parts) = self.identify(&mut group);
        self.predict(&key, &parts, switch)
    }

    /// The current group is submitted.
    pub(super) fn submit(
        &mut self,
        fragments: &Fragments,
        profile: &Profile,
        end: Submission,
        switch: Disturbance,
    ) -> (Prediction, Ticket) {
        let costs = Costs(profile);
        let mut group = self.pending.whole(fragments);
        group.cost.flush = if end == Submission::Finish { costs.finish() } else { costs.flush() };
        self.frame_fragments += group.fragments;
        if let Submission::Swap(target) = end {
            group.cost.swap = costs.swap(target, self.frame_fragments);
            self.frame_fragments = 0.0;
        }
        let (key, parts) = self.identify(&mut group);
        let ticket = Ticket {
            model: self.model,
            key,
            parts,
            vertices: group.vertices,
            fragments: group.fragments,
            fragment_ns: group.fragment_ns(),
            looked_back: group.looks_back,
        };
        (self.predict(&key, &parts, switch), ticket)
    }

    /// Whether a ticket is one of its own.
    pub(super) fn gave(&self, ticket: &Ticket) -> bool {
        self.model == ticket.model
    }

    fn predict(&self, key: &GroupKey, parts: &Parts, switch: Disturbance) -> Prediction {
        self.adaption.predict(key, parts, switch).scaled(self.overpredict)
    }
}

impl Judge {
    /// What a group is about, and its cost by that.
    ///
    /// What a dispatch takes is hardly known before it was measured, so beside draws it counts with what
    /// is known by now. Otherwise a long dispatch that models take for a short one would be charged to the
    /// draws around it. The same holds for blits, copies, uploads and clears.
    fn identify(&self, group: &mut Pending) -> (GroupKey, Parts) {
        let corrected = |group_type, cost_ns: f64| {
            let factor =
                if cost_ns > 0.0 { self.adaption.factor(&group.key(group_type, cost_ns)) } else { 1.0 };
            factor * cost_ns
        };
        let raw = group.cost;
        let [compute, draw] = [(GroupType::Compute, raw.compute), (GroupType::Draw, raw.draw)]
            .map(|(group_type, ns)| corrected(group_type, ns));
        let [copy, clear] = [(GroupType::Copy, raw.copy), (GroupType::Clear, raw.clear)]
            .map(|(group_type, ns)| corrected(group_type, ns));
        let group_type = if raw.swap > 0.0 {
            GroupType::Swap
        } else if raw.compute > 0.0 && compute >= draw.max(copy) {
            GroupType::Compute
        } else if raw.draw > 0.0 && raw.copy > 0.0 {
            if draw >= copy { GroupType::Draw } else { GroupType::Copy }
        } else {
            raw.without_compute().group_type()
        };
        let cost = &mut group.cost;
        for (other, part, known) in [
            (GroupType::Compute, &mut cost.compute, compute),
            (GroupType::Copy, &mut cost.copy, copy),
            (GroupType::Clear, &mut cost.clear, clear),
        ] {
            if group_type != other {
                *part = known;
            }
        }
        if matches!(group_type, GroupType::Compute | GroupType::Copy) {
            cost.draw = draw;
        }
        let parts = group.cost.parts(group_type);
        (group.key(group_type, parts.of_type_ns), parts)
    }
}

impl Pending {
    /// What corrections are kept by for a group that is about this, which takes so long by its model.
    fn key(&self, group_type: GroupType, of_type_ns: f64) -> GroupKey {
        let (program, vertices, target, state) = match group_type {
            GroupType::Compute => (self.dispatched.0, 0, self.dispatched.1, FragmentState::default()),
            GroupType::Copy | GroupType::Clear => (ProgramId(self.kinds), 0, 0, FragmentState::default()),
            _ => (self.program, self.vertices, self.target, self.state),
        };
        GroupKey { program, group_type, scene: Fingerprint::new(vertices, target, state).of_size(of_type_ns) }
    }
}

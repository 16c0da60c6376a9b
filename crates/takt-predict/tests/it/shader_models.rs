//! Five models, trained on generated programs, must predict programs they have never seen.

use std::sync::LazyLock;

use proptest::prelude::*;
use takt_predict::cost::{FragmentState, ProgramId, ShaderContext, ShaderCost, TextureSize};
use takt_predict::shaders::{
    MarsShaders, ProgramFeatures, ShaderFileError, ShaderModels, Submodel, TrainingSet, cross_validate,
    decode, encode, train,
};
use takt_rng::Rng;

use crate::imagined::{app, cost, training_set};

static MODELS: LazyLock<ShaderModels> = LazyLock::new(|| {
    let (models, _) = train("imagined", "1.0", &training_set(400)).expect("there are enough runs");
    models
});

#[test]
fn unseen_programs_are_predicted() {
    let mut shaders = MarsShaders::new(MODELS.clone(), 512);
    let mut rng = Rng::seeded(77);
    let (mut sum, mut worst, mut count) = (0.0, 0.0, 0.0);
    for number in 0..200 {
        let features = app(&mut rng);
        let program = ProgramId(number);
        shaders.insert(program, &features);
        let state = FragmentState { depth: rng.below(2) == 0, blend: rng.below(2) == 0 };
        let size = TextureSize { width: 1 << rng.below(12), height: 1 << rng.below(12) };
        let context = ShaderContext { program, state, textures: &[size] };
        let rates = shaders.rates(&context).expect("it was inserted");
        let truth = cost(&features, state, size);
        for (predicted, truth) in [rates.vertex_ns, rates.fragment_ns].into_iter().zip(truth) {
            let error = (predicted / truth - 1.0_f64).abs();
            sum += error;
            worst = f64::max(worst, error);
            count += 1.0;
        }
    }
    let mean = sum / count;
    assert!(mean < 0.03 && worst < 0.25, "mean {mean}, worst {worst}");
}

#[test]
fn cross_validation_tells_how_good_models_are() {
    for validation in cross_validate(&training_set(200), 5).expect("there are enough runs") {
        let name = validation.submodel.name();
        assert!(validation.rows > 100, "{name}: {} rows", validation.rows);
        assert!(validation.r_squared > 0.95, "{name}: R² {}", validation.r_squared);
        assert!(validation.error_p50 < 0.05, "{name}: median error {}", validation.error_p50);
        assert!(validation.mean_ns < validation.scale_ns * 0.1, "{name}: {validation:?}");
    }
    let error = cross_validate(&TrainingSet::default(), 5).expect_err("there are no runs");
    assert_eq!(error.submodel, Submodel::VertexAux);
}

#[test]
fn the_texture_and_the_state_matter() {
    let mut shaders = MarsShaders::new(MODELS.clone(), 8);
    let mut rng = Rng::seeded(5);
    let features = std::iter::repeat_with(|| app(&mut rng)).find(|one| one.fragment.lookups() > 1.0);
    let program = ProgramId(3);
    shaders.insert(program, &features.expect("one of four has lookups"));
    let fragment = |state, side| {
        let textures = [TextureSize { width: side, height: side }];
        shaders.rates(&ShaderContext { program, state, textures: &textures }).expect("known").fragment_ns
    };
    let plain = FragmentState::default();
    assert!(fragment(plain, 2048) > fragment(plain, 1) + 1.0);
    assert!(fragment(FragmentState { depth: true, blend: true }, 1) >= fragment(plain, 1));
    let unknown = ShaderContext { program: ProgramId(4), state: plain, textures: &[] };
    assert_eq!(shaders.rates(&unknown), None);
}

#[test]
fn known_programs_take_no_memory() {
    let mut shaders = MarsShaders::new(MODELS.clone(), 8);
    shaders.insert(ProgramId(1), &app(&mut Rng::seeded(9)));
    let textures = [TextureSize { width: 512, height: 256 }; 2];
    let context =
        ShaderContext { program: ProgramId(1), state: FragmentState::default(), textures: &textures };
    let memory = allocation_counter::measure(|| assert!(shaders.rates(&context).is_some()));
    assert_eq!(memory.count_total, 0);
    let memory = allocation_counter::measure(|| shaders.insert(ProgramId(2), &ProgramFeatures::default()));
    assert_eq!(memory.count_total, 0);
}

#[test]
fn files_give_back_what_was_written() {
    let text = encode(&MODELS);
    assert_eq!(decode(text.as_bytes()).as_ref(), Ok(&*MODELS));
    assert!(text.len() < 64 << 10, "{} bytes", text.len());
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let text = encode(&MODELS);
    let error = |text: &str| decode(text.as_bytes()).expect_err("it is wrong").to_string();
    assert_eq!(error("takt-shaders 2\n"), "line 1: expected \"takt-shaders 1\"");
    assert_eq!(error("takt-shaders 1\ngpu x\n"), "line 2: expected \"driver \"");
    let other = text.replacen("model texture lookups", "model texture calls", 1);
    assert!(
        error(&other).contains("the texture model has other features; train it again"),
        "{}",
        error(&other)
    );
    let damaged = text.replacen("intercept ", "intercept 1", 1);
    assert!(
        error(&damaged).contains("the vertex-aux model, which starts after line 4"),
        "{}",
        error(&damaged)
    );
    assert!(matches!(
        decode((text + "more\n").as_bytes()),
        Err(ShaderFileError::Line { expected: "the end", .. })
    ));
}

#[test]
fn a_training_without_runs_says_which_model_lacks_them() {
    let error = train("", "", &TrainingSet::default()).expect_err("there are no runs");
    assert_eq!(error.submodel, Submodel::VertexAux);
    assert_eq!(error.to_string(), "the vertex-aux model: 0 rows are too few, at least 2 are needed");
}

proptest! {
    #[test]
    fn random_bytes_are_no_models(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn damaged_files_end_with_models_or_an_error(
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut bytes = encode(&MODELS).into_bytes();
        let start = at.index(bytes.len());
        let end = start + cut.index((bytes.len() - start).min(100));
        bytes.splice(start..end, with);
        if let Ok(models) = decode(&bytes) {
            // Names are not under a hash; everything else is.
            prop_assert_eq!(models.model(Submodel::Texture), MODELS.model(Submodel::Texture));
        }
    }
}

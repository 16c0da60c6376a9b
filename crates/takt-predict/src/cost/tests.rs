use super::*;
use crate::profile::{ClearConstants, MemoryConstants, Piecewise, SwapConstants};

fn profile() -> Profile {
    let knee = Piecewise { fixed_ns: 10.0, below_ns: 1.0, above_ns: 3.0, knee_bytes: 100.0 };
    Profile {
        flush_ns: 1000.0,
        draw_ns: 50.0,
        depth_ns: 0.25,
        blend_ns: 0.5,
        msaa: [1.5, 2.0, 3.0, 5.0],
        clear: ClearConstants {
            fast_ns: 7.0,
            pixel_ns: [0.0, 1.0, 2.0, 2.5, 4.0, 5.0, 6.0, 7.0],
            byte_ns: 0.5,
        },
        swap: SwapConstants { pixel_ns: 2.0, write_byte_ns: 0.0, read_byte_ns: 0.0, tile_bytes: 64.0 },
        memory: MemoryConstants { load: knee, upload: knee, mipmap: knee, copy: knee, buffer: knee },
        ..Profile::default()
    }
}

const WINDOW: Target = Target::Default { pixels: 1600, fast_clear: false };

#[test]
fn clears_depend_on_buffers_and_target() {
    let profile = profile();
    let costs = Costs(&profile);
    let both = Buffers { color: true, depth: true, stencil: false };
    assert_eq!(costs.clear(both, WINDOW), 4000.0);
    assert_eq!(costs.clear(both, Target::Default { pixels: 1600, fast_clear: true }), 7.0);
    assert_eq!(costs.clear(both, Target::OffScreen { pixels: 1600, bytes: 20_000 }), 10_000.0);
    assert_eq!(costs.clear(Buffers::default(), WINDOW), 0.0);
}

#[test]
fn swaps_have_a_linear_and_a_tile_form() {
    let mut profile = profile();
    assert_eq!(Costs(&profile).swap(WINDOW, 100.0), 3200.0);
    profile.swap = SwapConstants { pixel_ns: 0.0, write_byte_ns: 0.5, read_byte_ns: 0.25, tile_bytes: 64.0 };
    let costs = Costs(&profile);
    // 100 tiles of 64 bytes are written, and a quarter of them is read.
    assert_eq!(costs.swap(WINDOW, 400.0), 3200.0 + 400.0);
    assert_eq!(costs.swap(WINDOW, 1e9), 3200.0 + 1600.0, "no more tiles than there are");
}

#[test]
fn memory_has_a_knee() {
    let profile = profile();
    let costs = Costs(&profile);
    let moves = [costs.load(200), costs.upload(200), costs.mipmap(200), costs.copy(200), costs.buffer(200)];
    assert_eq!(moves, [410.0; 5]);
    assert_eq!([costs.flush(), costs.finish()], [1000.0, 2000.0]);
}

#[test]
fn draws_add_calls_vertices_and_fragments() {
    let profile = profile();
    let rates = ShaderRates { vertex_ns: 2.0, fragment_ns: 0.5 };
    let load = |samples| DrawLoad { calls: 3, vertices: 100, fragments: 1000.0, samples };
    let costs = [0, 1, 2, 4, 8, 16, 64].map(|samples| Costs(&profile).draw(&load(samples), rates));
    assert_eq!(costs, [850.0, 850.0, 1100.0, 1350.0, 1850.0, 2850.0, 2850.0]);
}

#[test]
fn profiling_takes_off_what_is_not_the_shaders() {
    let profile = profile();
    let true_rates = ShaderRates { vertex_ns: 3.0, fragment_ns: 0.75 };
    let pixels = 1024 * 768;
    let run = |groups, draws, triangles, fragments: f64| {
        let load = DrawLoad { calls: draws, vertices: triangles * 3, fragments, samples: 1 };
        let total_ns = Costs(&profile).draw(&load, true_rates) + groups as f64 * profile.flush_ns;
        ProfilingRun { total_ns, groups, draws, triangles }
    };
    let vertex = run(12, 10, 100_000, 0.0);
    let fragment = run(10, 10, 30, 15.0 * pixels as f64);
    let found = ShaderRates::profiled(&vertex, &fragment, pixels, &profile);
    assert!((found.vertex_ns - 3.0).abs() < 1e-9 && (found.fragment_ns - 0.75).abs() < 1e-9, "{found:?}");
    let nothing = ProfilingRun { total_ns: f64::NAN, groups: 0, draws: 0, triangles: 0 };
    assert_eq!(ShaderRates::profiled(&nothing, &nothing, 0, &profile), ShaderRates::default());
}

fn shader(state: FragmentState) -> ShaderContext<'static> {
    ShaderContext { program: ProgramId(1), state, textures: &[] }
}

#[test]
fn profiled_shaders_add_depth_and_blending() {
    let mut shaders = ProfiledShaders::new(&profile(), 16);
    assert_eq!(shaders.rates(&shader(FragmentState::default())), None);
    shaders.insert(ProgramId(1), ShaderRates { vertex_ns: 3.0, fragment_ns: 1.0 });
    let fragment =
        |depth, blend| shaders.rates(&shader(FragmentState { depth, blend })).map(|rates| rates.fragment_ns);
    assert_eq!(fragment(false, false), Some(1.0));
    assert_eq!(fragment(true, false), Some(1.25));
    assert_eq!(fragment(true, true), Some(1.75));
}

#[test]
fn the_longer_of_fetching_and_executing_counts() {
    let parts = StageParts { aux_ns: 5.0, commands_ns: 2.0, texture_ns: 1.0 };
    assert_eq!(parts.rate_ns(), 5.0);
    assert_eq!(StageParts { texture_ns: 4.0, ..parts }.rate_ns(), 6.0);
}

#[test]
fn groups_are_named_by_what_they_are_about() {
    let cost = GroupCost { flush: 1.0, clear: 2.0, draw: 30.0, compute: 5.0, swap: 0.0, copy: 4.0 };
    assert_eq!(cost.group_type(), GroupType::Draw);
    assert_eq!(cost.parts(GroupType::Draw), Parts { of_type_ns: 30.0, aux_ns: 12.0 });
    assert_eq!(GroupCost { swap: 5.0, ..cost }.group_type(), GroupType::Swap);
    assert_eq!(GroupCost { compute: 31.0, ..cost }.group_type(), GroupType::Compute);
    assert_eq!(GroupCost { copy: 50.0, ..cost }.group_type(), GroupType::Copy);
    assert_eq!(GroupCost { flush: 5.0, ..GroupCost::default() }.group_type(), GroupType::Other);
}

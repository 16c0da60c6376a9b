# Fits the cases to which takt-predict's MARS is compared, with R's earth.
#
# Usage: Rscript scripts/mars_oracle.R [folder]
# Needs the Debian package r-cran-earth. Only its results are kept, so that tests need no R.
#
# cases.csv has one line per case: settings, then what earth found.
# rows.csv has the data of all cases, and earth's fitted value for every fifth row.
# Inputs are rounded before the fit, so that both sides see the same numbers.

suppressPackageStartupMessages(library(earth))

arguments <- commandArgs(trailingOnly = TRUE)
folder <- if (length(arguments) > 0) arguments[1] else "crates/takt-predict/tests/data/mars"
fitted_every <- 5

cases <- list()
add <- function(name, x, y, degree, nk, thresh, spans = "one", linear = integer(0)) {
  x <- signif(as.matrix(x), 5)
  cases[[length(cases) + 1]] <<- list(
    name = name, x = x, y = signif(y, 6), degree = degree, nk = nk, thresh = thresh,
    spans = spans, linear = linear
  )
}

# The thesis's examples of what such models can do.
circle <- seq(-1, 1, length.out = 101)
add("half-circle-coarse", circle, sqrt(1 - circle^2), 1, 21, 1e-3)
add("half-circle-fine", circle, sqrt(1 - circle^2), 1, 41, 1e-6)
grid <- expand.grid(x = seq(-0.9, 0.9, by = 0.1), y = seq(-0.9, 0.9, by = 0.1))
grid <- grid[grid$x^2 + grid$y^2 < 0.81, ]
sphere <- sqrt(1 - grid$x^2 - grid$y^2)
add("half-sphere-additive", grid, sphere, 1, 31, 1e-4)
add("half-sphere-31", grid, sphere, 2, 31, 1e-4)
add("half-sphere-61", grid, sphere, 2, 61, 1e-6)

# Texture lookups: the thesis's features and sizes, and a cache of 16384 texels as the cause.
sizes <- c(1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
lookups <- expand.grid(n = 1:3, w = sizes, h = sizes)
texels <- lookups$w * lookups$h
features <- data.frame(
  n = lookups$n, logw = log(lookups$w), logh = log(lookups$h), logwh = log(texels), inv = 1 / texels
)
misses <- pmax(0, 1 - 16384 / texels)
lookup_ns <- 1.4 + lookups$n * (0.9 * misses + 0.03 * pmax(0, log(texels) - 9)) - 0.2 / texels
set.seed(7)
add("texture-clean", features, lookup_ns, 2, 31, 1e-4)
add("texture-noisy", features, lookup_ns + rnorm(972, sd = 0.02) + rexp(972, 40), 2, 31, 1e-4)
add("texture-degree-3", features, lookup_ns + rnorm(972, sd = 0.01), 3, 31, 1e-4)

# Random sums of products of hinges; some features only disturb.
hinge <- function(x) {
  knot <- runif(1, 0.15, 0.85)
  switch(sample(3, 1), pmax(0, x - knot), pmax(0, knot - x), x)
}
random_case <- function(seed) {
  set.seed(seed)
  variables <- 1 + seed %% 5
  degree <- if (variables == 1) 1 else 1 + seed %% 2
  rows <- sample(80:240, 1)
  x <- matrix(runif(rows * variables), rows, variables)
  # Every third case has features with few values, as counts and flags have.
  if (seed %% 3 == 0) x[, variables] <- round(x[, variables] * 8) / 8
  useful <- seq_len(if (variables > 2) variables - sample(0:2, 1) else variables)
  y <- rep(runif(1, -5, 5), rows)
  for (term in seq_len(sample(2:5, 1))) {
    product <- rep(runif(1, 1, 8) * sample(c(-1, 1), 1), rows)
    for (variable in useful[sample(length(useful), min(length(useful), sample(degree, 1)))]) {
      product <- product * hinge(x[, variable])
    }
    y <- y + product
  }
  y <- y + rnorm(rows, sd = c(0.02, 0.1, 0.3)[1 + (seed %/% 5) %% 3] * sd(y))
  list(x = x, y = y, degree = degree)
}
for (seed in 1:60) {
  case <- random_case(seed)
  linear <- if (seed %% 10 == 4) ncol(case$x) else integer(0)
  nk <- if (seed %% 4 == 0) 31 else 21
  add(sprintf("random-%02d", seed), case$x, case$y, case$degree, nk, 1e-3, linear = linear)
}
# The same functions with automatic spans, whose rounding is each implementation's own.
for (seed in c(2, 7, 9, 13, 18, 23, 29, 34)) {
  case <- random_case(seed)
  add(sprintf("spans-%02d", seed), case$x, case$y, case$degree, 21, 1e-3, spans = "auto")
}

fit <- function(case) {
  x <- case$x
  colnames(x) <- paste0("x", seq_len(ncol(x)) - 1)
  span <- if (case$spans == "one") 1 else 0
  earth(x, case$y,
    degree = case$degree, nk = case$nk, thresh = case$thresh,
    penalty = if (case$degree > 1) 3 else 2,
    minspan = span, endspan = span, Adjust.endspan = if (case$spans == "one") 1 else 2,
    linpreds = if (length(case$linear) > 0) case$linear else FALSE,
    fast.k = 0, fast.beta = 0, Auto.linpreds = FALSE
  )
}

number <- function(value) trimws(formatC(value, digits = 12, format = "g"))
case_lines <- paste("name", "rows", "variables", "degree", "nk", "thresh", "spans", "linear",
  "found", "terms", "gcv", "rss", "rsq", "grsq", "selected", sep = ",")
row_lines <- c()
for (case in cases) {
  model <- fit(case)
  chosen <- model$dirs[model$selected.terms, , drop = FALSE]
  selected <- which(colSums(chosen != 0) > 0) - 1
  case_lines <- c(case_lines, paste(
    case$name, nrow(case$x), ncol(case$x), case$degree, case$nk, format(case$thresh), case$spans,
    paste(case$linear - 1, collapse = " "), nrow(model$dirs), length(model$selected.terms),
    number(model$gcv), number(model$rss), number(model$rsq), number(model$grsq),
    paste(selected, collapse = " "), sep = ","
  ))
  values <- as.vector(model$fitted.values)
  for (row in seq_len(nrow(case$x))) {
    fitted <- if (row %% fitted_every == 1) formatC(values[row], digits = 8, format = "g") else ""
    # Five and six digits were kept above, so that these print without loss.
    inputs <- c(formatC(case$x[row, ], digits = 5, format = "g"), formatC(case$y[row], digits = 6, format = "g"))
    row_lines <- c(row_lines, paste(c(trimws(inputs), trimws(fitted)), collapse = ","))
  }
}
dir.create(folder, recursive = TRUE, showWarnings = FALSE)
writeLines(case_lines, file.path(folder, "cases.csv"))
writeLines(row_lines, file.path(folder, "rows.csv"))
cat(length(cases), "cases,", length(row_lines), "rows\n")

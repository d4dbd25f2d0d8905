/* SPDX-License-Identifier: Apache-2.0
 * Scalars: what a training program logged over its steps (loss, learning rate,
 * histograms, text), apart from the trace. A store grows while the program
 * runs: each file is read on from where the last reading ended.
 *
 *     files    the event files; each belongs to a run (a folder)
 *     series   one tag of one file: step, wall time and value, in columns
 *     blobs    where graphs and RunMetadata stand in a file
 *     curves   what people look at: one tag of one run, its files joined
 *
 * The surprise: series keep everything in file order, even what a restart of
 * the program made void. Only curves leave that out, and count it. */
#ifndef SCALARS_SCALARS_H
#define SCALARS_SCALARS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/map.h"
#include "model/strs.h"
#include <stdbool.h>

enum series_kind {
    SERIES_SCALAR,
    SERIES_HISTOGRAM, /* value: the mean */
    SERIES_TEXT,
    SERIES_IMAGE,
    SERIES_AUDIO,
    SERIES_HPARAMS,
    SERIES_OTHER, /* a tensor of another plugin, or of no known form */
};

/* One histogram, summed up. */
struct histogram {
    double min, max, num, sum; /* num: how many values it counted */
    double sum_squares;        /* NAN: not recorded */
    uint64_t buckets;
};

struct series {
    uint32_t file;
    str_id tag;
    enum series_kind kind;
    size_t n, cap;
    int64_t *step;
    double *wall;          /* Unix seconds */
    double *value;         /* NAN for kinds that have none */
    struct histogram last; /* SERIES_HISTOGRAM: the last one */
    double min, max;       /* SERIES_HISTOGRAM: over all of them */
    char *text;            /* SERIES_TEXT: the last one, cut at TEXT_KEPT */
    struct restart {
        size_t at;    /* of the points before this one ... */
        int64_t step; /* ... those of this step and later are void */
    } * restarts;
    size_t nrestarts, cap_restarts;
};

enum { TEXT_KEPT = 4096, SERIES_MAX = 1 << 18, RESTARTS_MAX = 1000 };

struct scalar_file {
    char *path;
    str_id run;           /* the folder below the one that was searched */
    uint64_t offset;      /* of the first record that was not read yet */
    uint64_t records;     /* read, of any kind */
    uint64_t bad_records; /* failed their checksum */
    uint64_t bad_events;  /* whole, but no Event */
    uint64_t lost_bytes;  /* passed over to find the next whole record */
    uint64_t restarts;    /* of the program, as the file says */
    uint64_t skipped;     /* values of tags beyond SERIES_MAX */
    bool has_restart;     /* and then: the smallest step of them */
    int64_t restart_step;
    bool cut; /* bytes at the end are no whole record (yet) */
    bool any; /* and then: the first and last wall time */
    double first_wall, last_wall;
    str_id version, writer;
};

enum blob_kind { BLOB_GRAPH, BLOB_META_GRAPH, BLOB_RUN_METADATA, BLOB_KINDS };

/* A message that is kept where it stands. */
struct scalar_blob {
    uint32_t file;
    enum blob_kind kind;
    str_id tag;
    int64_t step;
    double wall;
    uint64_t at, n; /* offset and length in the file's contents */
};

struct scalars {
    struct strs strs;
    struct scalar_file *files;
    size_t nfiles, cap_files;
    struct series *series;
    size_t nseries, cap_series;
    struct scalar_blob *blobs;
    size_t nblobs, cap_blobs;
    struct map by_tag; /* file, tag, kind -> series */
    uint64_t points;   /* added so far, in all series */
    bool oom;          /* sticks; adders do not fail otherwise */
};

/* Makes the store ready for use; scalars_free undoes it. Returns false if out
 * of memory. */
bool scalars_init(struct scalars *s);
void scalars_free(struct scalars *s);

/* Adds a file (copies the names). Returns its number; UINT32_MAX if out of
 * memory. */
uint32_t scalars_file(struct scalars *s, const char *path, const char *run);

/* Forgets what a file gave, to read it again: it was written anew. */
void scalars_reset_file(struct scalars *s, uint32_t file);

/* Returns the series of that tag and kind, made when new; NULL if out of
 * memory, or too many tags (counted). Valid until the next call. About 20
 * ns. */
struct series *scalars_series(struct scalars *s, uint32_t file,
                              struct bytes tag, enum series_kind kind);

/* Returns the kind that the file gave the tag before, or SERIES_OTHER. */
enum series_kind scalars_kind_of(const struct scalars *s, uint32_t file,
                                 struct bytes tag);

/* Adds a point. */
void scalars_point(struct scalars *s, struct series *v, int64_t step,
                   double wall, double value);

/* Notes that the program began again at that step: earlier points of later
 * steps are void. */
void scalars_restart(struct scalars *s, uint32_t file, int64_t step);

void scalars_blob(struct scalars *s, const struct scalar_blob *b);

const char *series_kind_name(enum series_kind kind);

/* One tag of one run. Columns are borrowed from the store where nothing had to
 * be joined: they are good until the store is read on. */
struct curve {
    const char *run, *tag;
    enum series_kind kind;
    size_t n;
    const int64_t *step;
    const double *wall, *value;
    size_t replaced;   /* points left out: a restart did those steps again */
    size_t restarts;   /* how often */
    int64_t restarted; /* the step of the last one */
    bool interleaved;  /* two files of the run have it at the same time */
    const struct series *last; /* the latest series: histogram, text */
    double min, max;           /* SERIES_HISTOGRAM */
    void *own;                 /* NULL: borrowed */
};

struct curves {
    struct curve *v; /* by run, tag and kind */
    size_t n, cap;
};

/* Joins files of a run in the order of their first points; points of files that
 * overlap in time are merged by wall time. When the next file begins at a step
 * that was there already, the program was started again, and the points from
 * that step on are replaced. It fails only if memory runs out; on success the
 * caller frees. O(points) where something is to be joined. */
int scalars_curves(const struct scalars *s, struct curves *out,
                   struct ops_err *e);
void curves_free(struct curves *c);

#endif

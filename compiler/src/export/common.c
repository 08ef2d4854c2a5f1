#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

/* What kernels read: `LaunchContext`, `ErrorRecord` and `MAX_IMAGES` of Aerogel's runtime. */
struct ag_record {
    uint32_t state, site, n_args, padding;
    uint64_t args[8];
};

struct ag_context {
    const uint64_t *args;
    char *const *roots;
    char *temps;
    uint64_t *results;
    struct ag_record *errors;
    const void *host;
    uint64_t seed;
    const uint32_t *stop;
    const int64_t *apart;
    uint64_t part;
};

typedef void ag_task(const struct ag_context *, int64_t, int64_t);

/* Where an index is checked, and along which axes negative ones count from the end. */
struct ag_place {
    const char *line;
    uint64_t from_end;
};

/* A check of a kernel: of an index, or another one with its message and its line. In the message, the byte 1 and a letter
   stand for the next value: `i` a signed integer, `u` an unsigned one, `f` a float, `d` a double. */
struct ag_site {
    const char *message, *line;
};

/* An array of the caller's. */
struct ag_span {
    const void *begin;
    size_t bytes;
    int is_written;
};

/* Values that a loop saves for the backward pass. */
struct ag_history {
    char *values;
    size_t bytes, capacity;
};

enum { AG_OK, AG_CHECK, AG_MEMORY, AG_OVERLAP };

#define AG_AT(p) ((uint64_t)(uintptr_t)(p))
#define AG_TRY(call) if ((ag_code = (call))) goto ag_end

static _Thread_local char ag_message[1024];

static int ag_fail(int code, const char *what) {
    snprintf(ag_message, sizeof ag_message, "%s", what);
    return code;
}

static struct ag_context ag_context_of(struct ag_record *record, const uint64_t *args, char *temps, uint64_t *results) {
    static const uint32_t never;
    static const int64_t in_place[16];
    struct ag_context context = {args, 0, temps, results, record, 0, 0, &never, in_place, 0};
    return context;
}

static void ag_run(const struct ag_context *context, ag_task *task, int64_t n_points) {
    if (n_points > 0 && !context->errors->state)
        task(context, 0, n_points);
}

static int64_t ag_points(const int64_t *bounds, int n_axes) {
    int64_t n = 1;
    for (int k = 0; k < n_axes; k++)
        n *= bounds[2 * k + 1] > bounds[2 * k] ? bounds[2 * k + 1] - bounds[2 * k] : 0;
    return n;
}

/* The float with these bits. */
static double ag_single(uint32_t bits) {
    float single;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

/* The half with these bits. */
static double ag_half(uint32_t bits) {
    uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31)
        return ag_single(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return ag_single(sign | (exponent + 112) << 23 | fraction << 13);
    return (sign ? -1.0 : 1.0) * fraction / 16777216;
}

static int ag_value(char *out, size_t bytes, char kind, uint64_t slot) {
    double number;
    memcpy(&number, &slot, sizeof number);
    switch (kind) {
    case 'i': return snprintf(out, bytes, "%lld", (long long)slot);
    case 'u': return snprintf(out, bytes, "%llu", (unsigned long long)slot);
    case 'f': return snprintf(out, bytes, "%g", ag_single((uint32_t)slot));
    case 'b': return snprintf(out, bytes, "%g", ag_single((uint32_t)slot << 16));
    case 'h': return snprintf(out, bytes, "%g", ag_half((uint32_t)slot & 0xffff));
    default: return snprintf(out, bytes, "%g", number);
    }
}

static int ag_checked(const struct ag_record *record, const struct ag_site *site) {
    size_t at = 0, n = 0;
    for (const char *text = site->message; *text && at + 1 < sizeof ag_message; text++) {
        if (*text != 1)
            ag_message[at++] = *text;
        else if (text++, n < record->n_args)
            at += (size_t)ag_value(ag_message + at, sizeof ag_message - at, *text, record->args[n++]);
    }
    if (at + 1 < sizeof ag_message)
        snprintf(ag_message + at, sizeof ag_message - at, "%s%s", *site->line ? ", at " : "", site->line);
    return AG_CHECK;
}

static int ag_ended(const struct ag_record *record, const struct ag_site *sites, const struct ag_place *places) {
    if (!record->state)
        return AG_OK;
    if (sites[record->site].message)
        return ag_checked(record, &sites[record->site]);
    const struct ag_place *place = &places[record->args[0]];
    int axis = (int)record->args[1];
    int32_t index = (int32_t)record->args[2], size = (int32_t)record->args[3];
    if (index < 0 && place->from_end >> axis & 1)
        index -= size;
    snprintf(ag_message, sizeof ag_message, "index %d is outside axis %d with %d element%s%s%s", (int)index, axis, (int)size,
             size == 1 ? "" : "s", *place->line ? ", at " : "", place->line);
    return AG_CHECK;
}

static int ag_expect(int number, int least, const char *format) {
    if (number >= least)
        return AG_OK;
    snprintf(ag_message, sizeof ag_message, format, number);
    return AG_CHECK;
}

static int ag_size(const char *name, int64_t size) {
    if (size >= 0 && size <= INT32_MAX)
        return AG_OK;
    snprintf(ag_message, sizeof ag_message, "%s is %lld: it must be between 0 and %d", name, (long long)size, INT32_MAX);
    return AG_CHECK;
}

static int ag_overlap(const struct ag_span *spans, int n) {
    for (int k = 0; k < n; k++)
        for (int other = 0; other < n; other++) {
            uint64_t a = AG_AT(spans[k].begin), b = AG_AT(spans[other].begin);
            if (k != other && spans[k].is_written && a < b + spans[other].bytes && b < a + spans[k].bytes)
                return ag_fail(AG_OVERLAP, "an array that is written shares memory with another argument");
        }
    return AG_OK;
}

/* Memory of which the first bytes are zero. */
static int ag_allocate(char **memory, size_t bytes, size_t n_zeros) {
    *memory = aligned_alloc(64, bytes);
    if (!*memory)
        return ag_fail(AG_MEMORY, "out of memory");
    memset(*memory, 0, n_zeros);
    return AG_OK;
}

/* A number in memory, extended to 64 bits. */
static uint64_t ag_slot(const void *from, int bits, int is_signed) {
    uint64_t slot = 0;
    memcpy(&slot, from, (size_t)bits / 8);
    return is_signed ? (uint64_t)((int64_t)(slot << (64 - bits)) >> (64 - bits)) : slot;
}

static void ag_copy(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

static int ag_push(struct ag_history *history, const void *value, size_t bytes) {
    if (history->bytes + bytes > history->capacity) {
        size_t capacity = 2 * (history->bytes + bytes);
        char *values = realloc(history->values, capacity);
        if (!values)
            return ag_fail(AG_MEMORY, "out of memory for the values that loops save for the backward pass");
        history->values = values;
        history->capacity = capacity;
    }
    memcpy(history->values + history->bytes, value, bytes);
    history->bytes += bytes;
    return AG_OK;
}

static int ag_pop(struct ag_history *history, void *value, size_t bytes) {
    if (history->bytes < bytes)
        return ag_fail(AG_CHECK, "`pop` takes a value that no `push` has put there");
    history->bytes -= bytes;
    memcpy(value, history->values + history->bytes, bytes);
    return AG_OK;
}

static void ag_free(void *memory) {
    free(memory);
}

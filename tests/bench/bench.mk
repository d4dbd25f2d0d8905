# The bench programs: make -f tests/bench/bench.mk bench-programs
include Makefile

BENCH := $(B)/bench/grow $(B)/bench/bench

.PHONY: bench-programs
bench-programs: $(B)/opscope $(BENCH)

$(B)/bench/grow: tests/bench/grow.c tests/bench/grow_kineto.c \
	tests/bench/grow_xspace.c tests/bench/grow.h \
	$(filter $(B)/obj/base/%,$(LIBOBJ))
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) $(LIBS)

$(B)/bench/bench: tests/bench/bench.c tests/bench/yard.c tests/bench/yard.h \
	$(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) $(LIBS)

# The bench programs: make -f tests/bench/bench.mk bench-programs
include Makefile

BENCH := $(B)/bench/grow $(B)/bench/bench $(B)/bench/rec_bench \
	$(B)/bench/enc_bench

.PHONY: bench-programs
bench-programs: $(B)/opscope $(BENCH) demo

$(B)/bench/grow: tests/bench/grow.c tests/bench/grow_kineto.c \
	tests/bench/grow_xspace.c tests/bench/grow.h \
	$(filter $(B)/obj/base/%,$(LIBOBJ))
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) $(LIBS)

$(B)/bench/bench: tests/bench/bench.c tests/bench/yard.c tests/bench/yard.h \
	$(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) $(LIBS)

# Against the shared library, as most programs are; its name at run time is
# that of an installed one.
$(B)/bench/rec_bench: tests/bench/rec_bench.c include/opscope/record.h \
	$(B)/libopscope-record.so
	@mkdir -p $(@D)
	ln -sf ../libopscope-record.so $(@D)/libopscope-record.so.$(SOMAJOR)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(LDFLAGS) -L$(B) -lopscope-record \
	    -Wl,-rpath,'$$ORIGIN'

$(B)/bench/enc_bench: tests/bench/enc_bench.c $(RECOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) -lm

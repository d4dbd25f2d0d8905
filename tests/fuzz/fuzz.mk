# The fuzz targets and their seeds: make -f tests/fuzz/fuzz.mk fuzz
# Needs clang (libFuzzer). What else the Makefile makes can be made of the same
# objects: the tests under clang's sanitizers.
CC     := $(shell command -v clang || ls /usr/bin/clang-[0-9]* | tail -n 1)
B      := build-clang-address-undefined
SAN    := address,undefined
CFLAGS := -O1 -gline-tables-only -fsanitize=fuzzer-no-link
include Makefile

# The fuzzer is led by what it covers of the readers; tests need no such lead.
$(addprefix $(B)/,obj/analyze/%.o obj/present/%.o obj/export/%.o obj/rec/%.o \
	unit/% process/% mutate/%): \
	ALL_CFLAGS := $(filter-out -fsanitize=fuzzer-no-link,$(ALL_CFLAGS))

FUZZ := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: fuzz
fuzz: $(FUZZ) $(B)/seeds/made

$(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz_importer.h $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(LIBOBJ) -fsanitize=fuzzer $(LDFLAGS) $(LIBS)

$(B)/seeds/made: tests/fuzz/seeds.py $(shell find tests/data -type f)
	@$(PYTHON) tests/fuzz/seeds.py tests/data $(B)/seeds
	@touch $@

# SPDX-License-Identifier: Apache-2.0
# opscope: GNU make. All output goes to build/, or build-<variant>/.
#
#   make                        the program and the libraries
#   make demo                   the training program that records itself
#   make test                   the quick tests: unit, golden, command line
#   make check                  the same, after the check of the layers
#   make golden                 rewrite the golden texts; read the diff
#   make warnings               gcc and clang with -Werror
#   make headers                every header compiles alone
#   make report                 sizes against the budgets
#   make SAN=address,undefined  the same with sanitizers, in a folder of its own
#   make V=1                    show the commands
#   make install PREFIX=/usr/local [DESTDIR=]
#
# A new .c file under src/, in a folder or one below it, or under tests/unit/
# needs no edit here.

comma   := ,
CC      ?= cc
SAN     ?=
B       ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
PREFIX  ?= /usr/local
Q       := $(if $(V),,@)
PYTHON  ?= $(firstword $(wildcard /usr/bin/python3) python3)
VERSION := $(shell cat VERSION)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))

OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g
ALL_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla $(if $(WERROR),-Werror) \
	-fvisibility=hidden -fPIC -fno-omit-frame-pointer -pthread \
	-Isrc -Iinclude -DOPS_VERSION='"$(VERSION)"' -D_GNU_SOURCE \
	$(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
ALL_LDFLAGS := $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN))
LIBS    := -lisal -lzstd -liberty -lm -pthread

SRC     := $(sort $(wildcard src/*/*.c src/*/*/*.c))
HDR     := $(sort $(wildcard src/*/*.h src/*/*/*.h include/opscope/*.h))
OBJ     := $(patsubst src/%.c,$(B)/obj/%.o,$(SRC))
MAIN    := $(B)/obj/cmd/main.o
# The recording's format, ring/, is known on both sides.
RECOBJ  := $(filter $(B)/obj/rec/% $(B)/obj/ring/%,$(OBJ))
LIBOBJ  := $(filter-out $(B)/obj/cmd/% $(B)/obj/rec/%,$(OBJ))
UNIT    := $(patsubst tests/unit/%.c,$(B)/unit/%,\
	$(sort $(wildcard tests/unit/test_*.c)))
TESTLIB := $(B)/obj/test.a

.DELETE_ON_ERROR:
.PHONY: docs all objects unit test test-unit check golden layers report headers warnings \
	install clean
# The sanitizers' run-time does not go into a shared library of ours.
all: $(B)/opscope $(B)/libopscope.a $(B)/opscope.pc \
	$(B)/libopscope-record.a $(B)/opscope-record.pc \
	$(if $(SAN),,$(B)/libopscope.so $(B)/libopscope-record.so)

objects: $(OBJ)

$(B)/opscope: $(filter $(B)/obj/cmd/%,$(OBJ)) $(LIBOBJ)
	@echo "link    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# One object in which only the public symbols are global: a program's own
# functions may have any name.
$(B)/libopscope.a: $(LIBOBJ)
	@echo "archive $@"
	@rm -f $@
	$(Q)$(CC) -r -nostdlib -o $(B)/obj/opscope.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(B)/obj/opscope.o
	$(Q)$(AR) rcs $@ $(B)/obj/opscope.o

$(B)/libopscope-record.a: $(RECOBJ)
	@echo "archive $@"
	@rm -f $@
	$(Q)$(CC) -r -nostdlib -o $(B)/obj/opscope-record.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(B)/obj/opscope-record.o
	$(Q)$(AR) rcs $@ $(B)/obj/opscope-record.o

# Never unloaded: threads end after dlclose(), and then their rings are told.
$(B)/libopscope-record.so: $(RECOBJ)
	@echo "link    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-z,nodelete,--no-undefined \
	    -Wl,-soname,libopscope-record.so.$(SOMAJOR) -o $@ $^ -pthread

$(B)/opscope-record.pc: VERSION Makefile
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' \
	    'libdir=$${prefix}/lib' '' 'Name: opscope-record' \
	    'Description: records what a program does' \
	    'Version: $(VERSION)' 'Cflags: -I$${includedir}' \
	    'Libs: -L$${libdir} -lopscope-record' 'Libs.private: -pthread' > $@

$(B)/opscope.pc: VERSION Makefile
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' \
	    'libdir=$${prefix}/lib' '' 'Name: opscope' \
	    'Description: reads profiles of deep-learning programs' \
	    'Version: $(VERSION)' 'Cflags: -I$${includedir}' \
	    'Libs: -L$${libdir} -lopscope' 'Libs.private: $(LIBS)' > $@

$(B)/libopscope.so: $(LIBOBJ)
	@echo "link    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libopscope.so.$(SOMAJOR) \
	    -Wl,--no-undefined -Wl,--exclude-libs,ALL -o $@ $^ $(LIBS)

$(B)/obj/%.o: src/%.c Makefile VERSION
	@echo "compile $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Unit tests see everything but main(); an archive, so that each links only
# what it uses. Removed first: ar keeps the objects of deleted files.
$(TESTLIB): $(filter-out $(MAIN),$(OBJ))
	@rm -f $@
	$(Q)$(AR) rcsT $@ $^

$(B)/unit/%: tests/unit/%.c $(TESTLIB) Makefile
	@echo "test    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -Itests -o $@ $< $(TESTLIB) \
	    $(ALL_LDFLAGS) -lcmocka $(LIBS)

unit: $(UNIT)

test: all unit
	@$(PYTHON) tests/run --build $(B) unit golden cli

check: layers
	@$(MAKE) --no-print-directory test

test-unit: unit
	@$(PYTHON) tests/run --build $(B) unit

golden: all
	@$(PYTHON) tests/run --build $(B) --update golden

# docs/reference.md, printed from the tables
docs: $(B)/opscope
	@sh tools/reference.sh $(B)/opscope > docs/reference.md

layers:
	@$(PYTHON) tools/layers.py

report:
	@$(PYTHON) tools/layers.py --report

# Through a file that only includes it: what a header may rely on is itself.
CHECK_HDR := $(HDR:%=check-alone/%)
.PHONY: $(CHECK_HDR)
headers: $(CHECK_HDR)
$(CHECK_HDR): check-alone/%: %
	@printf '#include "%s"\n' \
	    "$(patsubst include/%,%,$(patsubst src/%,%,$<))" | \
	    $(CC) $(ALL_CFLAGS) -Werror -fsyntax-only -x c -

warnings:
	@$(MAKE) --no-print-directory CC=gcc B=build-gcc WERROR=1 objects
	@$(MAKE) --no-print-directory CC=clang B=build-clang WERROR=1 objects

D := $(DESTDIR)$(PREFIX)
install: all
	install -d $(D)/bin $(D)/lib/pkgconfig $(D)/share/man/man1 \
	    $(D)/share/bash-completion/completions \
	    $(D)/share/zsh/site-functions $(D)/share/fish/vendor_completions.d
	install -m 755 $(B)/opscope $(D)/bin/opscope
	install -m 644 $(B)/libopscope.a $(D)/lib/libopscope.a
	install -m 644 $(B)/libopscope-record.a $(D)/lib/libopscope-record.a
	for l in libopscope libopscope-record; do \
	    install -m 755 $(B)/$$l.so $(D)/lib/$$l.so.$(VERSION) && \
	    ln -sf $$l.so.$(VERSION) $(D)/lib/$$l.so.$(SOMAJOR) && \
	    ln -sf $$l.so.$(SOMAJOR) $(D)/lib/$$l.so || exit 1; done
	for p in opscope opscope-record; do \
	    sed 's|^prefix=.*|prefix=$(PREFIX)|' $(B)/$$p.pc \
	    > $(D)/lib/pkgconfig/$$p.pc || exit 1; done
	$(if $(wildcard include/opscope/*.h),install -d $(D)/include/opscope && \
	    install -m 644 include/opscope/*.h $(D)/include/opscope)
	$(B)/opscope help --man > $(D)/share/man/man1/opscope.1
	$(B)/opscope completion bash \
	    > $(D)/share/bash-completion/completions/opscope
	$(B)/opscope completion zsh > $(D)/share/zsh/site-functions/_opscope
	$(B)/opscope completion fish \
	    > $(D)/share/fish/vendor_completions.d/opscope.fish

clean:
	rm -rf build build-*

include demo/demo.mk $(wildcard tests/fuzz/mutate.mk)
-include $(wildcard $(B)/obj/*/*.d $(B)/obj/*/*/*.d $(B)/unit/*.d)
